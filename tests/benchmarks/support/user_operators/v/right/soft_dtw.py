import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SoftDTW(Function):
    """Soft dynamic time warping value of a cost matrix D (n, m), Cuturi & Blondel 2017."""

    @staticmethod
    def forward(ctx, D, gamma=1.0):
        n, m = D.shape
        R = D.new_full((n + 2, m + 2), float("inf"))
        R[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                r = torch.stack([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]])
                R[i, j] = D[i - 1, j - 1] - gamma * torch.logsumexp(-r / gamma, 0)
        ctx.save_for_backward(D, R)
        ctx.gamma = gamma
        return R[n, m].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        D, R = ctx.saved_tensors
        gamma = ctx.gamma
        n, m = D.shape
        R = R.clone()
        R[n + 1, :] = R[:, m + 1] = float("-inf")
        R[n + 1, m + 1] = R[n, m]
        Dp = D.new_zeros(n + 2, m + 2)
        Dp[1:n + 1, 1:m + 1] = D
        E = torch.zeros_like(Dp)
        E[n + 1, m + 1] = 1
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                a = torch.exp((R[i + 1, j] - R[i, j] - Dp[i + 1, j]) / gamma)
                b = torch.exp((R[i, j + 1] - R[i, j] - Dp[i, j + 1]) / gamma)
                c = torch.exp((R[i + 1, j + 1] - R[i, j] - Dp[i + 1, j + 1]) / gamma)
                E[i, j] = a * E[i + 1, j] + b * E[i, j + 1] + c * E[i + 1, j + 1]
        return grad * E[1:n + 1, 1:m + 1], None
