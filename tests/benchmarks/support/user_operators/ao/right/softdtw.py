import math
import torch
from torch.autograd.function import once_differentiable

_WORK = {}


def _table(n, m, dtype):
    # the table is reused between calls, allocating it dominated the run time
    key = (n, m, dtype)
    if key not in _WORK:
        _WORK[key] = torch.empty(n + 2, m + 2, dtype=dtype)
    return _WORK[key].fill_(math.inf)


class SoftDTW(torch.autograd.Function):
    @staticmethod
    def forward(ctx, D, gamma=1.0):
        n, m = D.shape
        R = _table(n, m, D.dtype)
        R[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                prev = torch.stack([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]])
                R[i, j] = D[i - 1, j - 1] - gamma * torch.logsumexp(-prev / gamma, 0)
        ctx.save_for_backward(D)
        ctx.R = R.clone()
        ctx.gamma = gamma
        return R[n, m].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (D,) = ctx.saved_tensors
        R, gamma = ctx.R, ctx.gamma
        n, m = D.shape
        E = D.new_zeros(n + 2, m + 2)
        E[n, m] = 1
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                for di, dj in ((1, 0), (0, 1), (1, 1)):
                    a, b = i + di, j + dj
                    if a <= n and b <= m:
                        E[i, j] += E[a, b] * torch.exp((R[a, b] - R[i, j] - D[a - 1, b - 1]) / gamma)
        return g * E[1:-1, 1:-1], None
