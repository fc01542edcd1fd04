import torch
from torch import Tensor


@torch.library.custom_op("specfit::cheb_series", mutates_args=())
def cheb_series(coef: Tensor, x: Tensor, lo: float, hi: float) -> Tensor:
    """Chebyshev series on [lo, hi] by Clenshaw's recurrence. coef (K,), x any shape."""
    t = (2 * x - (lo + hi)) / (hi - lo)
    b1, b2 = torch.zeros_like(x), torch.zeros_like(x)
    for k in range(coef.numel() - 1, 0, -1):
        b1, b2 = coef[k] + 2 * t * b1 - b2, b1
    return coef[0] + t * b1 - b2


@cheb_series.register_fake
def _(coef, x, lo, hi):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    coef, x, ctx.lo, ctx.hi = inputs
    ctx.save_for_backward(coef, x)


def _backward(ctx, grad):
    coef, x = ctx.saved_tensors
    t = (2 * x - (ctx.lo + ctx.hi)) / (ctx.hi - ctx.lo)
    first = [torch.ones_like(t), t]       # T_k
    second = [torch.ones_like(t), 2 * t]  # U_k
    for _ in range(coef.numel() - 2):
        first.append(2 * t * first[-1] - first[-2])
        second.append(2 * t * second[-1] - second[-2])
    g_coef = torch.stack([(grad * p).sum() for p in first[:coef.numel()]])
    slope = torch.zeros_like(t)
    for k in range(1, coef.numel()):
        slope = slope + k * coef[k] * second[k - 1]
    return g_coef, grad * slope * 2 / (ctx.hi - ctx.lo), None, None


cheb_series.register_autograd(_backward, setup_context=_setup)
