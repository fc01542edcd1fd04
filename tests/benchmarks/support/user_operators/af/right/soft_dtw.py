import torch
from torch.autograd.function import once_differentiable

INF = float("inf")


class _SoftDTW(torch.autograd.Function):
    @staticmethod
    def forward(ctx, D, gamma, bandwidth):
        n, m = D.shape
        R = D.new_full((n + 2, m + 2), INF)
        R[0, 0] = 0
        for j in range(1, m + 1):
            for i in range(1, n + 1):
                if bandwidth > 0 and abs(i - j) > bandwidth:
                    continue
                prev = torch.stack([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]])
                R[i, j] = D[i - 1, j - 1] - gamma * torch.logsumexp(-prev / gamma, 0)
        ctx.save_for_backward(D, R)
        ctx.gamma, ctx.bandwidth = gamma, bandwidth
        return R[n, m].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        D, R = ctx.saved_tensors
        gamma, bandwidth = ctx.gamma, ctx.bandwidth
        n, m = D.shape
        E = D.new_zeros(n + 2, m + 2)
        E[n, m] = 1
        cost = D.new_zeros(n + 2, m + 2)
        cost[1:-1, 1:-1] = D
        for j in range(m, 0, -1):
            for i in range(n, 0, -1):
                if (i, j) == (n, m) or (bandwidth > 0 and abs(i - j) > bandwidth):
                    continue
                for di, dj in ((1, 0), (0, 1), (1, 1)):
                    a, b = i + di, j + dj
                    if torch.isinf(R[a, b]):
                        continue
                    w = torch.exp((R[a, b] - R[i, j] - cost[a, b]) / gamma)
                    E[i, j] += w * E[a, b]
        return grad * E[1:-1, 1:-1], None, None


def soft_dtw(x, y, gamma=1.0, bandwidth=0):
    """x (n, d), y (m, d): soft minimum over alignments of squared distances.
    A bandwidth (Sakoe-Chiba, 0 for none) has to be at least |n - m|."""
    D = ((x[:, None] - y[None]) ** 2).sum(-1)
    return _SoftDTW.apply(D, gamma, bandwidth)
