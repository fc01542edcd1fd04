import torch
from torch.autograd.function import once_differentiable


class SoftDTW(torch.autograd.Function):
    """Soft-DTW (Cuturi & Blondel 2017) of cost matrices D: (B, N, M) -> (B,)

    bandwidth > 0 keeps to a Sakoe-Chiba band
    """

    @staticmethod
    def forward(ctx, D, gamma=1.0, bandwidth=0):
        B, N, M = D.shape
        R = D.new_full((B, N + 2, M + 2), float("inf"))
        R[:, 0, 0] = 0
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                if 0 < bandwidth < abs(i - j):
                    continue
                r = torch.stack([R[:, i - 1, j - 1], R[:, i - 1, j], R[:, i, j - 1]], -1)
                R[:, i, j] = D[:, i - 1, j - 1] - gamma * torch.logsumexp(-r / gamma, -1)
        ctx.save_for_backward(D, R)
        ctx.gamma, ctx.bandwidth = gamma, bandwidth
        return R[:, N, M].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        D, R = ctx.saved_tensors
        gamma, bandwidth = ctx.gamma, ctx.bandwidth
        B, N, M = D.shape
        C = D.new_zeros(B, N + 2, M + 2)
        C[:, 1:N + 1, 1:M + 1] = D
        E = torch.zeros_like(C)
        E[:, -1, -1] = 1
        R = R.masked_fill(torch.isinf(R), float("-inf"))
        R[:, -1, -1] = R[:, N, M]
        for j in range(M, 0, -1):
            for i in range(N, 0, -1):
                if 0 < bandwidth < abs(i - j):
                    continue
                a = torch.exp((R[:, i + 1, j] - R[:, i, j] - C[:, i + 1, j]) / gamma)
                b = torch.exp((R[:, i, j + 1] - R[:, i, j] - C[:, i, j + 1]) / gamma)
                c = torch.exp((R[:, i + 1, j + 1] - R[:, i, j] - C[:, i + 1, j + 1]) / gamma)
                E[:, i, j] = E[:, i + 1, j] * a + E[:, i, j + 1] * b + E[:, i + 1, j + 1] * c
        return grad[:, None, None] * E[:, 1:N + 1, 1:M + 1], None, None
