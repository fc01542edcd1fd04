import torch
from torch.autograd.function import once_differentiable


class LeslieProjection(torch.autograd.Function):
    """
    Age-structured population after `years` projections.

    n0        (a,)    individuals per age class
    fecundity (a,)    offspring per individual
    survival  (a-1,)  survival from one class to the next
    """

    @staticmethod
    def forward(ctx, n0, fecundity, survival, years):
        n = n0.clone()
        history = []
        for _ in range(years):
            history.append(n)
            n = torch.cat([(fecundity * n).sum().view(1), survival * n[:-1]])
        ctx.save_for_backward(fecundity, survival, *history)
        return n

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        fecundity, survival, *history = ctx.saved_tensors
        gf, gs = torch.zeros_like(fecundity), torch.zeros_like(survival)
        for n in history:
            gf += g[0] * n
            gs += g[1:] * n[:-1]
            back = g[0] * fecundity
            back[:-1] += g[1:] * survival
            g = back
        return g, gf, gs, None
