import torch
from torch.autograd import Function


class L2Normalize(Function):
    @staticmethod
    def forward(ctx, x, eps=1e-8):
        n = (x * x).sum(-1, keepdim=True).clamp(min=eps ** 2).sqrt()
        ctx.save_for_backward(x)
        ctx.eps = eps
        return x / n

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        sq = (x * x).sum(-1, keepdim=True)
        n = sq.clamp(min=ctx.eps ** 2).sqrt()
        proj = (x * dy).sum(-1, keepdim=True) / n ** 2
        proj = torch.where(sq > ctx.eps ** 2, proj, torch.zeros_like(proj))
        return (dy - x * proj) / n, None
