"""Soft dynamic time warping (Cuturi & Blondel, 2017)."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

INF = float("inf")


def _weight(to, frm, cost, gamma):
    return torch.exp(to - frm - cost)


class SoftDTW(Function):
    """Soft-DTW of cost matrices.

    D: (B, N, M) pairwise costs; gamma > 0: smoothing of the minimum; returns (B,).
    """

    @staticmethod
    def forward(ctx, D, gamma=1.0):
        B, N, M = D.shape
        R = D.new_full((B, N + 2, M + 2), INF)
        R[:, 0, 0] = 0
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                prev = torch.stack([R[:, i - 1, j - 1], R[:, i - 1, j], R[:, i, j - 1]], -1)
                softmin = -gamma * torch.logsumexp(-prev / gamma, -1)
                R[:, i, j] = D[:, i - 1, j - 1] + softmin
        ctx.save_for_backward(D, R)
        ctx.gamma = gamma
        return R[:, N, M].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        D, R = ctx.saved_tensors
        gamma = ctx.gamma
        B, N, M = D.shape
        R = R.clone()
        R[:, N + 1, :] = -INF
        R[:, :, M + 1] = -INF
        R[:, N + 1, M + 1] = R[:, N, M]
        cost = torch.nn.functional.pad(D, (1, 1, 1, 1))
        E = torch.zeros_like(R)
        E[:, N + 1, M + 1] = 1
        for j in range(M, 0, -1):
            for i in range(N, 0, -1):
                r = R[:, i, j]
                down = _weight(R[:, i + 1, j], r, cost[:, i + 1, j], gamma)
                right = _weight(R[:, i, j + 1], r, cost[:, i, j + 1], gamma)
                diag = _weight(R[:, i + 1, j + 1], r, cost[:, i + 1, j + 1], gamma)
                E[:, i, j] = (down * E[:, i + 1, j] + right * E[:, i, j + 1]
                              + diag * E[:, i + 1, j + 1])
        return grad[:, None, None] * E[:, 1:-1, 1:-1], None


def soft_dtw(x, y, gamma=1.0):
    """x (B, N, F), y (B, M, F), squared Euclidean costs"""
    cost = (x[:, :, None] - y[:, None]).pow(2).sum(-1)
    return SoftDTW.apply(cost, gamma)
