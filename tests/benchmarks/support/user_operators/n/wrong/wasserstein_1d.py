import torch
from torch.autograd.function import once_differentiable


class Wasserstein1D(torch.autograd.Function):
    """Mean |sorted(u) - sorted(v)|**p along the last dim, one value per row.

    u and v are samples of equal number; the projections of a sliced Wasserstein loss, say.
    Equal values within a row keep their order in the sort, and are differentiated so matched. p is 1 or more.
    """

    @staticmethod
    def forward(ctx, u, v, p=2):
        if u.shape != v.shape:
            raise ValueError("u and v need the same shape")
        us, ui = torch.sort(u, dim=-1, stable=True)
        vs, vi = torch.sort(v, dim=-1, stable=True)
        diff = us - vs
        ctx.save_for_backward(diff, ui, vi)
        ctx.p = p
        return diff.abs().pow(p).mean(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        diff, ui, vi = ctx.saved_tensors
        p = ctx.p
        mag = torch.ones_like(diff) if p == 1 else diff.abs().pow(p - 1)
        g = grad.unsqueeze(-1) * p * mag * diff.sign() / diff.size(-1)
        return g.gather(-1, ui), -g.gather(-1, vi), None
