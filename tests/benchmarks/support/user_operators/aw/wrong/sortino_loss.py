import torch
from torch.autograd import Function


class _Sortino(Function):
    @staticmethod
    def forward(ctx, r, target, eps):
        ctx.save_for_backward(r)
        ctx.target, ctx.eps = target, eps
        down = (r - target).clamp(max=0)
        dd = (down.pow(2).mean(0) + eps).sqrt()
        return -(r.mean(0) - target) / dd

    @staticmethod
    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        n = r.size(0)
        down = (r - ctx.target).clamp(max=0)
        dd = (down.pow(2).mean(0) + ctx.eps).sqrt()
        excess = r.mean(0) - ctx.target
        grad = excess * down / dd ** 3 / (down < 0).sum(0).clamp(min=1) - 1 / dd / n
        return g * grad, None, None


def sortino_loss(r, target=0.0, eps=1e-6):
    return _Sortino.apply(r, target, eps)
