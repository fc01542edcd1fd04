"""Box filter with clipped windows (He et al., guided filtering), through summed areas."""
import torch
from torch import Tensor


def _window_sum(x: Tensor, radius: int, dim: int) -> Tensor:
    n = x.size(dim)
    zero = torch.zeros_like(x.narrow(dim, 0, 1))
    csum = torch.cat((zero, x.cumsum(dim)), dim)
    pos = torch.arange(n, device=x.device)
    hi = (pos + radius + 1).clamp(max=n)
    lo = (pos - radius).clamp(min=0)
    return csum.index_select(dim, hi) - csum.index_select(dim, lo)


def _window_sum2d(x: Tensor, radius: int) -> Tensor:
    return _window_sum(_window_sum(x, radius, -1), radius, -2)


def _count(x: Tensor, radius: int) -> Tensor:
    return _window_sum2d(torch.ones_like(x), radius)


@torch.library.custom_op("rsutils::box_mean", mutates_args=())
def _box_mean(x: Tensor, radius: int) -> Tensor:
    return _window_sum2d(x, radius) / _count(x, radius)


@_box_mean.register_fake
def _(x, radius):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.radius = inputs[1]


def _backward(ctx, grad):
    return _window_sum2d(grad, ctx.radius) / _count(grad, ctx.radius), None


_box_mean.register_autograd(_backward, setup_context=_setup)


def box_filter(x: Tensor, radius: int = 1) -> Tensor:
    """Mean over the (2 * radius + 1)^2 window around each pixel.

    Windows are clipped at the border and the mean is over the pixels inside.

    Args:
        x: (..., H, W)
        radius: 0 or more
    """
    if radius < 0:
        raise ValueError("radius must not be negative")
    return _box_mean(x, radius)
