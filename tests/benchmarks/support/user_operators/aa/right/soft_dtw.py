import math

import torch
from torch.autograd.function import once_differentiable


class SoftDTW(torch.autograd.Function):
    """Soft-DTW discrepancy (Cuturi & Blondel) of a cost matrix D (n, m), smoothing gamma > 0.

    bandwidth: Sakoe-Chiba radius in cells, 0 for none.
    """

    @staticmethod
    def forward(ctx, D, gamma: float = 1.0, bandwidth: int = 0):
        n, m = D.shape
        R = torch.full((n + 2, m + 2), math.inf, dtype=D.dtype, device=D.device)
        R[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                if bandwidth and abs(i - j) > bandwidth:
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
        E = torch.zeros_like(R)
        E[n, m] = 1

        def weight(i, j, ii, jj):
            # share of cell (i, j) in the soft minimum of its successor (ii, jj)
            return torch.exp((R[ii, jj] - R[i, j] - D[ii - 1, jj - 1]) / gamma)

        for j in range(m, 0, -1):
            for i in range(n, 0, -1):
                if (i, j) == (n, m) or (bandwidth and abs(i - j) > bandwidth):
                    continue
                e = torch.zeros((), dtype=D.dtype, device=D.device)
                for ii, jj in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                    if ii > n or jj > m or (bandwidth and abs(ii - jj) > bandwidth):
                        continue
                    e = e + E[ii, jj] * weight(i, j, ii, jj)
                E[i, j] = e
        return grad * E[1:-1, 1:-1], None, None
