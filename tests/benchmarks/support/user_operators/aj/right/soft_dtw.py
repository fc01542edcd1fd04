import math
import torch
from torch.autograd.function import once_differentiable

_buffers = {}


def _workspace(shape, like):
    key = (shape, like.dtype, like.device)
    if key not in _buffers:
        _buffers[key] = like.new_empty(shape)
    return _buffers[key]


class SoftDTW(torch.autograd.Function):
    """D (B, N, M) pairwise costs -> (B,)"""

    @staticmethod
    def forward(ctx, D, gamma=1.0):
        B, N, M = D.shape
        R = D.new_empty(B, N + 2, M + 2).fill_(math.inf)
        R[:, 0, 0] = 0
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                prev = torch.stack([R[:, i - 1, j - 1], R[:, i - 1, j], R[:, i, j - 1]])
                R[:, i, j] = D[:, i - 1, j - 1] - gamma * torch.logsumexp(-prev / gamma, 0)
        ctx.save_for_backward(D)
        ctx.R, ctx.gamma = R, gamma
        return R[:, N, M].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        D, = ctx.saved_tensors
        gamma = ctx.gamma
        B, N, M = D.shape
        cost = _workspace((B, N + 2, M + 2), D).zero_()
        cost[:, 1:N + 1, 1:M + 1] = D
        R = ctx.R.clone()
        R[:, N + 1, :] = -math.inf
        R[:, :, M + 1] = -math.inf
        R[:, N + 1, M + 1] = R[:, N, M]
        E = torch.zeros_like(R)
        E[:, N + 1, M + 1] = 1
        for i in range(N, 0, -1):
            for j in range(M, 0, -1):
                a = torch.exp((R[:, i + 1, j] - R[:, i, j] - cost[:, i + 1, j]) / gamma)
                b = torch.exp((R[:, i, j + 1] - R[:, i, j] - cost[:, i, j + 1]) / gamma)
                c = torch.exp((R[:, i + 1, j + 1] - R[:, i, j] - cost[:, i + 1, j + 1]) / gamma)
                E[:, i, j] = E[:, i + 1, j] * a + E[:, i, j + 1] * b + E[:, i + 1, j + 1] * c
        return g[:, None, None] * E[:, 1:N + 1, 1:M + 1], None
