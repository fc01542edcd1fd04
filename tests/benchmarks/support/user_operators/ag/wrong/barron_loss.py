import torch
from torch.autograd import Function


class _General(Function):
    @staticmethod
    def forward(ctx, x, c, alpha):
        ctx.save_for_backward(x, c)
        ctx.alpha = alpha
        s = (x / c) ** 2
        if alpha == 2.0:
            return 0.5 * s
        if alpha == 0.0:
            return torch.log1p(0.5 * s)
        if alpha == float("-inf"):
            return -torch.expm1(-0.5 * s)
        b = abs(alpha - 2.0)
        return b / alpha * ((s / b + 1) ** (alpha / 2) - 1)

    @staticmethod
    def backward(ctx, g):
        x, c = ctx.saved_tensors
        alpha = ctx.alpha
        s = (x / c) ** 2
        if alpha == 2.0:
            w = torch.ones_like(s)
        elif alpha == 0.0:
            w = 1 / (s + 1)
        elif alpha == float("-inf"):
            w = torch.exp(-0.5 * s)
        else:
            w = (s / abs(alpha - 2.0) + 1) ** (alpha / 2 - 1)
        gx = g * w * x / c ** 2
        gc = -gx * x / c
        return gx.sum_to_size(x.shape), gc.sum_to_size(c.shape), None


def robust_loss(x, c, alpha=1.0, reduction=None):
    """Barron's general and adaptive robust loss with fixed shape ``alpha`` and scale ``c`` (tensor, broadcasts).

    alpha = 2: L2, 1: Charbonnier, 0: Cauchy, -2: Geman-McClure, -inf: Welsch
    """
    rho = _General.apply(x, c, float(alpha))
    if reduction == "mean":
        return rho.mean()
    return rho if reduction is None else rho.sum()
