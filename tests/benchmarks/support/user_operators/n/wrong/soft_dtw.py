import torch
from torch.autograd.function import once_differentiable


class SoftDTW(torch.autograd.Function):
    """Soft-DTW value of a batch of cost matrices (B, N, M), smoothing gamma > 0 (Cuturi & Blondel)."""

    @staticmethod
    def forward(ctx, D, gamma=1.0):
        B, N, M = D.shape
        R = D.new_full((B, N + 2, M + 2), float("inf"))
        R[:, 0, 0] = 0
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                r = torch.stack((R[:, i - 1, j - 1], R[:, i - 1, j], R[:, i, j - 1]), 1)
                R[:, i, j] = D[:, i - 1, j - 1] - gamma * torch.logsumexp(-r / gamma, dim=1)
        ctx.save_for_backward(D, R.clone())
        ctx.gamma = gamma
        return R[:, N, M].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        D, R = ctx.saved_tensors
        gamma = ctx.gamma
        B, N, M = D.shape
        Dp = D.new_zeros(B, N + 2, M + 2)
        Dp[:, 1:N + 1, 1:M + 1] = D
        E = torch.zeros_like(Dp)
        E[:, N + 1, M + 1] = 1
        R = R.clone()
        R[:, :, M + 1] = float("-inf")
        R[:, N + 1, :] = float("-inf")
        R[:, N + 1, M + 1] = R[:, N, M]
        for i in range(N, 0, -1):
            for j in range(M, 0, -1):
                a = (R[:, i + 1, j] - R[:, i, j] - Dp[:, i + 1, j]).exp()
                b = (R[:, i, j + 1] - R[:, i, j] - Dp[:, i, j + 1]).exp()
                c = (R[:, i + 1, j + 1] - R[:, i, j] - Dp[:, i + 1, j + 1]).exp()
                E[:, i, j] = E[:, i + 1, j] * a + E[:, i, j + 1] * b + E[:, i + 1, j + 1] * c
        return E[:, 1:N + 1, 1:M + 1] * grad.view(-1, 1, 1), None
