import torch
from torch import Tensor


@torch.library.custom_op("simplexopt::mirror_step", mutates_args=())
def _mirror_step(x: Tensor, grad: Tensor, eta: float) -> Tensor:
    return torch.softmax(x.log() - eta * grad, dim=-1)


@_mirror_step.register_fake
def _(x, grad, eta):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, grad, ctx.eta = inputs
    ctx.save_for_backward(x, output)


def _backward(ctx, g):
    x, y = ctx.saved_tensors
    s = y * (g - (g * y).sum())
    return s / x, -ctx.eta * s, None


_mirror_step.register_autograd(_backward, setup_context=_setup)


def mirror_step(x, grad, eta):
    """One entropic mirror-descent step on the simplex.

    Parameters
    ----------
    x : Tensor (..., n)
        Current iterate; positive, sums to one along the last axis.
    grad : Tensor (..., n)
        Gradient of the objective at ``x``.
    eta : float
        Step size.
    """
    return torch.ops.simplexopt.mirror_step(x, grad, eta)
