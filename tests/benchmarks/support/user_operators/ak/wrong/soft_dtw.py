import torch
from torch.autograd.function import once_differentiable

_SCRATCH = {}


def _scratch(name, shape, like, value):
    """a work array that is used again from call to call"""
    key = name, tuple(shape), like.dtype, like.device
    if key not in _SCRATCH:
        _SCRATCH[key] = like.new_empty(shape)
    return _SCRATCH[key].fill_(value)


class SoftDTW(torch.autograd.Function):
    """Soft dynamic time warping of cost matrices (B, N, M). -> (B,)"""

    @staticmethod
    def forward(ctx, cost, gamma=1.0):
        b, n, m = cost.shape
        r = _scratch("r", (b, n + 2, m + 2), cost, float("inf"))
        r[:, 0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                prev = torch.stack([r[:, i - 1, j - 1], r[:, i - 1, j], r[:, i, j - 1]], -1)
                r[:, i, j] = cost[:, i - 1, j - 1] - gamma * torch.logsumexp(-prev / gamma, -1)
        ctx.save_for_backward(cost)
        ctx.r, ctx.gamma = r, gamma
        return r[:, n, m].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (cost,) = ctx.saved_tensors
        b, n, m = cost.shape
        r, gamma = ctx.r, ctx.gamma
        e = _scratch("e", (b, n + 2, m + 2), cost, 0.0)
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                if i == n and j == m:
                    e[:, i, j] = 1
                    continue
                total = 0
                for k, l in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                    if k <= n and l <= m:
                        w = ((r[:, k, l] - cost[:, k - 1, l - 1] - r[:, i, j]) / gamma).exp()
                        total = total + e[:, k, l] * w
                e[:, i, j] = total
        return e[:, 1:-1, 1:-1] * g[:, None, None], None
