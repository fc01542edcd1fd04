import math

import torch


def _rows(z):
    size = (1 + math.isqrt(1 + 8 * z.shape[-1])) // 2
    i, j = torch.tril_indices(size, size, -1, device=z.device)
    r = z.new_zeros(*z.shape[:-1], size, size)
    flat = r.flatten(-2).index_add(-1, i * size + j, torch.tanh(z))
    r = flat.unflatten(-1, (size, size))
    rest = torch.sqrt((1 - r**2).cumprod(-1))
    return r, torch.cat([torch.ones_like(rest[..., :1]), rest[..., :-1]], -1), i, j


class CorrCholesky(torch.autograd.Function):
    """Unconstrained vector to the Cholesky factor of a correlation matrix, by tanh of partial correlations.

    Args:
        z (Tensor): ``(..., K * (K - 1) / 2)``, rows of the strict lower triangle one after another.

    Returns:
        Tensor: ``(..., K, K)``
    """

    @staticmethod
    def forward(ctx, z):
        r, rest, _, _ = _rows(z)
        eye = torch.eye(r.shape[-1], dtype=z.dtype, device=z.device)
        chol = (r + eye) * rest.tril()
        ctx.save_for_backward(z, chol)
        return chol

    @staticmethod
    def backward(ctx, grad):
        z, chol = ctx.saved_tensors
        r, rest, i, j = _rows(z)
        weighted = grad * chol
        after = weighted.sum(-1, keepdim=True) - weighted.cumsum(-1)
        g = (1 - r**2) * rest * grad - r * after
        return g[..., i, j]
