import torch
from torch.autograd import Function


class GroupSoftThreshold(Function):
    """Proximal operator of the group lasso: x * max(0, 1 - lam / |x|), norms over `dim`.

    x of any shape, lam a positive 0-dim tensor (learned ISTA steps); groups with
    |x| <= lam become zero.
    """

    @staticmethod
    def forward(ctx, x, lam, dim=-1):
        n = x.norm(dim=dim, keepdim=True)
        on = n > lam
        shrink = torch.where(on, 1 - lam / torch.where(on, n, torch.ones_like(n)), torch.zeros_like(n))
        ctx.dim = dim
        ctx.save_for_backward(x, lam)
        return x * shrink

    @staticmethod
    def backward(ctx, g):
        x, lam = ctx.saved_tensors
        sq = x.pow(2).sum(ctx.dim, keepdim=True)
        on = sq > lam * lam
        n = torch.where(on, sq, torch.ones_like(sq)).sqrt()
        dot = (x * g).sum(ctx.dim, keepdim=True)
        gx = glam = None
        if ctx.needs_input_grad[0]:
            gx = (1 - lam / n) * g
            gx = torch.where(on, gx, torch.zeros_like(gx))
        if ctx.needs_input_grad[1]:
            glam = -torch.where(on, dot / n, torch.zeros_like(n)).sum()
        return gx, glam, None
