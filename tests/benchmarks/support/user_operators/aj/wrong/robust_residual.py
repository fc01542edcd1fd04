import math
import torch


class _General(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, c):
        ctx.save_for_backward(x)
        ctx.alpha, ctx.c = alpha, c
        z = (x / c) ** 2
        if alpha == 2:
            return 0.5 * z
        if alpha == 0:
            return torch.log1p(0.5 * z)
        if alpha == -math.inf:
            return 1 - torch.exp(-0.5 * z)
        b = abs(alpha - 2)
        return b / alpha * ((z / b + 1) ** (alpha / 2) - 1)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        alpha, c = ctx.alpha, ctx.c
        if alpha == 2:
            d = x / c ** 2
        elif alpha == 0:
            d = x / (x ** 2 + 2 * c ** 2)
        elif alpha == -math.inf:
            d = x / c ** 2 * torch.exp(-0.5 * (x / c) ** 2)
        else:
            d = x / c ** 2 * ((x / c) ** 2 / abs(alpha - 2) + 1) ** (alpha / 2 - 1)
        return g * d, None, None


def robust_residual(x, alpha=1.0, c=1.0, weight=None, reduction="mean"):
    """General robust loss of Barron (2019). alpha 2 = L2, 1 = Charbonnier, 0 = Cauchy, -2 = Geman-McClure, -inf = Welsch"""
    loss = _General.apply(x, float(alpha), float(c))
    if weight is not None:
        loss = loss * weight
    return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]()
