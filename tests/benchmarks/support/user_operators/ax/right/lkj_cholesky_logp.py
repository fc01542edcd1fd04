import math

import torch
from torch.autograd import Function


class LKJCholeskyLogProb(Function):
    """Log density of the LKJ distribution at Cholesky factors of correlation matrices.

    Args:
        chol (Tensor): lower triangular with positive diagonal and rows of unit norm, ``(..., K, K)``, K >= 2.
        eta (Tensor): concentration, positive, 0-dim.
    """

    @staticmethod
    def forward(ctx, chol, eta):
        ctx.save_for_backward(chol, eta)
        k = chol.shape[-1]
        order = k - torch.arange(2, k + 1, dtype=chol.dtype, device=chol.device) + 2 * (eta - 1)
        logs = chol.diagonal(dim1=-2, dim2=-1)[..., 1:].log()
        p = k - 1
        alpha = eta + 0.5 * p
        norm = 0.5 * p * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, p) - p * torch.lgamma(alpha)
        return (order * logs).sum(-1) - norm

    @staticmethod
    def backward(ctx, grad):
        chol, eta = ctx.saved_tensors
        k = chol.shape[-1]
        order = k - torch.arange(2, k + 1, dtype=chol.dtype, device=chol.device) + 2 * (eta - 1)
        diag = chol.diagonal(dim1=-2, dim2=-1)[..., 1:]
        g_diag = grad[..., None] * order / diag
        g_chol = torch.diag_embed(torch.nn.functional.pad(g_diag, (1, 0)))
        p = k - 1
        alpha = eta + 0.5 * p
        steps = torch.arange(p, dtype=chol.dtype, device=chol.device) / 2
        d_norm = torch.digamma(alpha - 0.5 - steps).sum() - p * torch.digamma(alpha)
        g_eta = (grad * (2 * diag.log().sum(-1) - d_norm)).sum()
        return g_chol, g_eta
