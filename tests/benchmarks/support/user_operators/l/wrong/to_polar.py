from typing import NamedTuple

import torch
from torch import Tensor


class Polar(NamedTuple):
    magnitude: Tensor
    phase: Tensor


class _ToPolar(torch.autograd.Function):
    @staticmethod
    def forward(z):
        return z.abs(), z.angle()

    @staticmethod
    def setup_context(ctx, inputs, output):
        z, = inputs
        ctx.save_for_backward(z)

    @staticmethod
    def backward(ctx, g_mag, g_phase):
        z = ctx.saved_tensors[0].data
        r2 = z.real ** 2 + z.imag ** 2
        at_origin = r2 == 0
        r2 = r2.masked_fill(at_origin, 1.0)
        grad = g_mag * z / r2.sqrt() + 1j * g_phase * z / r2
        return grad.masked_fill(at_origin, 0)


def to_polar(z: Tensor) -> Polar:
    """Magnitude and phase (radians) of a complex tensor of any shape.

    Both gradients are zero at the origin.  The branch cut of the phase is the negative real axis.

    >>> m, p = to_polar(torch.tensor([3 + 4j]))
    >>> m
    tensor([5.])
    """
    if not torch.is_complex(z):
        raise TypeError("to_polar needs a complex tensor")
    return Polar(*_ToPolar.apply(z))


if __name__ == "__main__":
    import doctest
    doctest.testmod()
