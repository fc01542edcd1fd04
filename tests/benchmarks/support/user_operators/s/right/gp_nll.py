import math

import torch


class GPNegLogLik(torch.autograd.Function):
    """-log N(y | 0, K + jitter I).  K is symmetrised, so each entry counts half.  K (n, n), y (n,)."""

    @staticmethod
    def forward(ctx, K, y, jitter=1e-6):
        n = y.numel()
        C = (K + K.mT) / 2 + jitter * torch.eye(n, dtype=K.dtype, device=K.device)
        L = torch.linalg.cholesky(C)
        a = torch.cholesky_solve(y[:, None], L)[:, 0]
        ctx.save_for_backward(K, y)
        ctx.jitter = jitter
        return 0.5 * y @ a + L.diagonal().log().sum() + 0.5 * n * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, grad):
        K, y = ctx.saved_tensors
        C = (K + K.mT) / 2 + ctx.jitter * torch.eye(y.numel(), dtype=K.dtype, device=K.device)
        Cinv = torch.linalg.inv(C)
        a = Cinv @ y
        return grad * 0.5 * (Cinv - torch.outer(a, a)), grad * a, None
