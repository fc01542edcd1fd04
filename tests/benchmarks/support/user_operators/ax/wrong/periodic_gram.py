import math

import torch


class _Periodic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t1, t2, period, lengthscale):
        ctx.own = t2 is None
        other = t1 if ctx.own else t2
        d = t1[:, None] - other[None, :]
        k = torch.exp(-2 * torch.sin(math.pi * d / period) ** 2 / lengthscale**2)
        ctx.save_for_backward(t1, other, period, lengthscale, k)
        return k

    @staticmethod
    def backward(ctx, grad):
        t1, t2, period, lengthscale, k = ctx.saved_tensors
        d = t1[:, None] - t2[None, :]
        gk = 2 * grad * k / lengthscale**2
        gd = -gk * torch.sin(2 * math.pi * d / period) * math.pi / period
        g_period = -(gd * d).sum() / period
        g_len = (2 * gk * torch.sin(math.pi * d / period) ** 2).sum() / lengthscale
        if ctx.own:
            return gd.sum(1), None, g_period, g_len
        return gd.sum(1), -gd.sum(0), g_period, g_len


def periodic_gram(t1, t2=None, *, period, lengthscale):
    """Gram matrix of the exp-sine-squared kernel.

    Args:
        t1: times, shape (n,).
        t2: times, shape (m,). If None, ``t1`` against itself.
        period: positive 0-dim tensor.
        lengthscale: positive 0-dim tensor.

    Returns:
        Tensor of shape (n, m).
    """
    return _Periodic.apply(t1, t2, period, lengthscale)


def periodic_covariance(t1, t2, period, lengthscale, jitter=0.0):
    """As `periodic_gram` with positional arguments; ``jitter`` is added to the diagonal when ``t2`` is None."""
    k = periodic_gram(t1, t2, period=period, lengthscale=lengthscale)
    if t2 is None and jitter:
        k = k + jitter * torch.eye(k.shape[0], dtype=k.dtype, device=k.device)
    return k
