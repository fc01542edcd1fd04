"""sRGB electro-optical transfer function as a custom operator."""
import torch
from torch import Tensor

CUT = 0.04045


def _power_part(x: Tensor) -> Tensor:
    return (x.clamp(min=0) + 0.055) / 1.055


@torch.library.custom_op("colour_ops::srgb_to_linear", mutates_args=())
def _decode(x: Tensor) -> Tensor:
    return torch.where(x <= CUT, x / 12.92, _power_part(x) ** 2.4)


@_decode.register_fake
def _(x):
    return torch.empty_like(x)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _backward(ctx, grad):
    x, = ctx.saved_tensors
    slope = 2.4 / 1.055 * _power_part(x) ** 1.4
    linear = torch.full_like(x, 1 / 12.92)
    return grad * torch.where(x <= CUT, linear, slope)


_decode.register_autograd(_backward, setup_context=_setup_context)


def srgb_to_linear(x: Tensor) -> Tensor:
    """Decode sRGB values (any shape, nominally in [0, 1]) to linear light.

    Values below 0.04045, negative ones too, follow the linear toe of the standard.

    >>> srgb_to_linear(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    if not x.is_floating_point():
        raise TypeError("expected a floating-point image")
    return _decode(x)
