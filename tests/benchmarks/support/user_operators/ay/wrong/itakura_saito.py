import torch
from torch.autograd import Function


class ItakuraSaito(Function):
    @staticmethod
    def forward(ctx, p, q, reduction, eps):
        ctx.save_for_backward(p, q)
        ctx.reduction, ctx.eps = reduction, eps
        ratio = (p + eps) / (q + eps)
        d = ratio - ratio.log() - 1
        if reduction == "none":
            return d
        return d.sum() if reduction == "sum" else d.sum((-2, -1)).mean()

    @staticmethod
    def backward(ctx, g):
        p, q = ctx.saved_tensors
        p, q = p + ctx.eps, q + ctx.eps
        if ctx.reduction == "mean":
            g = g / p.numel()
        gp = g * (1 / q - 1 / p)
        gq = g * (1 / q - p / q ** 2)
        return gp, gq, None, None


def itakura_saito(p, q, reduction="sum", eps=1e-6):
    """Itakura-Saito divergence between power spectra p (target) and q.

    Args:
        p, q: power spectrograms (..., F, T), same shape, both differentiable
        reduction: 'none', 'sum', or 'mean': summed over F and T, averaged over the batch
        eps: added to both
    """
    return ItakuraSaito.apply(p, q, reduction, eps)
