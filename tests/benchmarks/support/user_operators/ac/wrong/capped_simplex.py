import torch
from torch.autograd import Function


class CappedSimplexProjection(Function):
    """Euclidean projection of every row onto {0 <= x <= cap, sum(x) = k} by bisection."""

    @staticmethod
    def forward(ctx, y, k=1.0, cap=1.0, n_iter=100):
        lo = y.min(dim=-1, keepdim=True).values - cap
        hi = y.max(dim=-1, keepdim=True).values
        for _ in range(n_iter):
            mid = 0.5 * (lo + hi)
            too_big = (y - mid).clamp(0, cap).sum(-1, keepdim=True) > k
            lo = torch.where(too_big, mid, lo)
            hi = torch.where(too_big, hi, mid)
        x = (y - 0.5 * (lo + hi)).clamp(0, cap)
        ctx.save_for_backward(x)
        ctx.cap = cap
        return x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        free = (x > 0).to(grad.dtype)
        count = free.sum(-1, keepdim=True).clamp(min=1)
        mean = (grad * free).sum(-1, keepdim=True) / count
        return free * (grad - mean), None, None, None
