import torch


class CappedSimplex(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, iters=60):
        lo = x.min(-1, keepdim=True)[0] - 1
        hi = x.max(-1, keepdim=True)[0]
        for _ in range(iters):
            mid = (lo + hi) / 2
            big = (x - mid).clamp(0, 1).sum(-1, keepdim=True) > k
            lo = torch.where(big, mid, lo)
            hi = torch.where(big, hi, mid)
        y = (x - hi).clamp(0, 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        free = y > 0
        n = free.sum(-1, keepdim=True).clamp(min=1)
        g = g * free
        return free * (g - g.sum(-1, keepdim=True) / n), None, None


def capped_simplex(x, k=1, iters=60):
    # projection on {0 <= y <= 1, sum y = k}, 0 < k < n integer
    return CappedSimplex.apply(x, k, iters)
