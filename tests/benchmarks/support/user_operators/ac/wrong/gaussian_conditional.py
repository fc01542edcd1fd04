import math
import torch
from torch import Tensor


def _cdf(t):
    return 0.5 * torch.erfc(-t / math.sqrt(2))


def _pdf(t):
    return torch.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)


@torch.library.custom_op("codec::gaussian_likelihood", mutates_args=())
def gaussian_likelihood(y: Tensor, scales: Tensor, means: Tensor, scale_min: float) -> Tensor:
    """P(y) of an integer-width bin under N(means, scales); works on |y - mean| so that both
    CDFs are evaluated in the left tail."""
    s = scales.clamp(min=scale_min)
    v = (y - means).abs()
    return _cdf((0.5 - v) / s) - _cdf((-0.5 - v) / s)


@gaussian_likelihood.register_fake
def _(y, scales, means, scale_min):
    return torch.empty_like(y)


def _setup(ctx, inputs, output):
    y, scales, means, ctx.scale_min = inputs
    ctx.save_for_backward(y, scales, means)


def _backward(ctx, grad):
    y, scales, means = ctx.saved_tensors
    s = scales.clamp(min=ctx.scale_min)
    d = y - means
    v = d.abs()
    upper, lower = (0.5 - v) / s, (-0.5 - v) / s
    g_v = grad * (_pdf(lower) - _pdf(upper)) / s
    g_y = g_v
    g_s = grad * (_pdf(lower) * lower - _pdf(upper) * upper) / s
    return g_y, g_s * (scales >= ctx.scale_min), -g_y, None


gaussian_likelihood.register_autograd(_backward, setup_context=_setup)
