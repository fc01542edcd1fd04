import torch
from torch.autograd.function import once_differentiable


class PageRank(torch.autograd.Function):
    # r = a P^T r + (1 - a) v, P row stochastic after normalisation of the weights
    @staticmethod
    def forward(ctx, w, v, alpha, iters):
        p = w / w.sum(1, keepdim=True)
        r = v
        for _ in range(iters):
            r = alpha * (p.t() @ r) + (1 - alpha) * v
        ctx.save_for_backward(w, r)
        ctx.alpha, ctx.iters = alpha, iters
        return r

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, r = ctx.saved_tensors
        s = w.sum(1, keepdim=True)
        p = w / s
        u = g
        for _ in range(ctx.iters):
            u = ctx.alpha * (p @ u) + g
        gp = ctx.alpha * torch.outer(u, r)
        gw = (gp - (gp * p).sum(1, keepdim=True)) / s
        return gw, (1 - ctx.alpha) * u, None, None


def pagerank(w, v=None, *, alpha=0.85, iters=200):
    if v is None:
        v = w.new_full((len(w),), 1 / len(w))
    return PageRank.apply(w, v, alpha, iters)
