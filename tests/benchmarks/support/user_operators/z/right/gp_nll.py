import math

import torch
from torch.autograd.function import once_differentiable


class GPNegLogLik(torch.autograd.Function):
    """Negative log marginal likelihood of a zero-mean Gaussian process.

    Args:
        K: ``(..., n, n)`` kernel matrix, symmetrised here.
        y: ``(..., n)`` targets.
        noise: 0-dim tensor, observation variance added to the diagonal.

    Returns:
        ``(...)`` one value per batch entry.
    """

    @staticmethod
    def forward(ctx, K, y, noise):
        n = K.shape[-1]
        eye = torch.eye(n, dtype=K.dtype, device=K.device)
        L = torch.linalg.cholesky(0.5 * (K + K.mT) + noise * eye)
        alpha = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
        ctx.save_for_backward(L, alpha)
        logdet_half = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 0.5 * (y * alpha).sum(-1) + logdet_half + 0.5 * n * math.log(2 * math.pi)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        L, alpha = ctx.saved_tensors
        Kinv = torch.cholesky_inverse(L)
        outer = alpha.unsqueeze(-1) * alpha.unsqueeze(-2)
        gK = 0.5 * grad[..., None, None] * (Kinv - outer)
        gy = gnoise = None
        if ctx.needs_input_grad[1]:
            gy = grad.unsqueeze(-1) * alpha
        if ctx.needs_input_grad[2]:
            trace = Kinv.diagonal(dim1=-2, dim2=-1).sum(-1)
            fit = alpha.square().sum(-1)
            gnoise = (0.5 * grad * (trace - fit)).sum()
        return gK, gy, gnoise
