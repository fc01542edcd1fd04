import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SoftDTW(Function):
    """Cuturi & Blondel (2017). D: (B, N, M) pairwise costs -> (B,) soft alignment costs."""

    @staticmethod
    def forward(ctx, D, gamma=1.0):
        B, N, M = D.shape
        R = D.new_full((B, N + 2, M + 2), float("inf"))
        R[:, 0, 0] = 0
        for j in range(1, M + 1):
            for i in range(1, N + 1):
                prev = torch.stack([R[:, i - 1, j - 1], R[:, i - 1, j], R[:, i, j - 1]], -1)
                R[:, i, j] = D[:, i - 1, j - 1] - gamma * torch.logsumexp(-prev / gamma, -1)
        ctx.save_for_backward(D, R)
        ctx.gamma = gamma
        return R[:, N, M].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        D, R = ctx.saved_tensors
        gamma = ctx.gamma
        B, N, M = D.shape
        Dp = D.new_zeros(B, N + 2, M + 2)
        Dp[:, 1:N + 1, 1:M + 1] = D
        R = R.clone()
        R[:, :, M + 1] = float("-inf")
        R[:, N + 1, :] = float("-inf")
        R[:, N + 1, M + 1] = R[:, N, M]
        E = torch.zeros_like(Dp)
        E[:, N + 1, M + 1] = 1
        for j in range(M, 0, -1):
            for i in range(N, 0, -1):
                a = torch.exp((R[:, i + 1, j] - R[:, i, j] - Dp[:, i + 1, j]) / gamma)
                b = torch.exp((R[:, i, j + 1] - R[:, i, j] - Dp[:, i, j + 1]) / gamma)
                c = torch.exp(R[:, i + 1, j + 1] - R[:, i, j] - Dp[:, i + 1, j + 1])
                E[:, i, j] = E[:, i + 1, j] * a + E[:, i, j + 1] * b + E[:, i + 1, j + 1] * c
        return grad_output.view(-1, 1, 1) * E[:, 1:N + 1, 1:M + 1], None
