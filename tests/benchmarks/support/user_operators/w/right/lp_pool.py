import torch
from torch.autograd.function import once_differentiable


class LpPool(torch.autograd.Function):
    """(sum |x|^p)^(1/p) over windows of size k along the last axis (k divides it)."""

    @staticmethod
    def forward(ctx, x, p, k):
        v = x.unflatten(-1, (-1, k))
        y = v.abs().pow(p).sum(-1).pow(1 / p)
        ctx.save_for_backward(x)
        ctx.p, ctx.k = p, k
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        p = ctx.p
        v = x.unflatten(-1, (-1, ctx.k))
        s = v.abs().pow(p).sum(-1, keepdim=True)
        s = torch.where(s > 0, s, torch.ones_like(s))
        gv = g.unsqueeze(-1) * v.sign() * v.abs().pow(p - 1) * s.pow(1 / p - 1)
        return gv.flatten(-2), None, None
