import torch
from torch.autograd.function import once_differentiable as od


class HardNeg(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, p, m, k, red):
        s = a @ p.t()
        n = s.size(0)
        neg = s.masked_fill(torch.eye(n, dtype=torch.bool, device=s.device), float('-inf'))
        v, i = neg.topk(k, 1)
        h = m + v - s.diagonal()[:, None]
        ctx.save_for_backward(a, p, i, h > 0)
        ctx.n = n * k if red == 'mean' else 1
        return h.clamp(min=0).sum() / ctx.n

    @staticmethod
    @od
    def backward(ctx, g):
        a, p, i, on = ctx.saved_tensors
        g /= ctx.n
        on = on * g
        gs = torch.zeros(a.size(0), p.size(0), dtype=a.dtype, device=a.device).scatter_(1, i, on)
        gs.diagonal().sub_(on.sum(1))
        return gs @ p, gs.t() @ a, None, None, None
