"""Wasserstein distances between one-dimensional samples of equal size."""
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _SortedCost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, p):
        xs, ix = x.sort(dim=-1)
        ys, iy = y.sort(dim=-1)
        diff = xs - ys
        ctx.save_for_backward(diff, ix, iy)
        ctx.p = p
        return diff.abs().pow(p).mean(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        diff, ix, iy = ctx.saved_tensors
        p = ctx.p
        g = grad.unsqueeze(-1) * p * diff.abs().pow(p - 1) * diff.sign() / diff.shape[-1]
        gx = torch.zeros_like(g).scatter_(-1, ix, g)
        gy = torch.zeros_like(g).scatter_(-1, iy, -g)
        return gx, gy, None


def wasserstein_1d(x: Tensor, y: Tensor, p: float = 2.0) -> Tensor:
    """W_p^p between the empirical distributions along the last axis.

    Args:
        x, y: samples (..., N), same shape
        p: order, at least 1

    Returns:
        (...) the p-th power of the distance
    """
    if x.shape != y.shape:
        raise ValueError("x and y must have the same shape")
    if p < 1:
        raise ValueError("p must be at least 1")
    return _SortedCost.apply(x, y, p)


def sliced_wasserstein(a: Tensor, b: Tensor, n_proj: int = 64, p: float = 2.0) -> Tensor:
    theta = torch.randn(a.shape[-1], n_proj, dtype=a.dtype, device=a.device)
    theta = theta / theta.norm(dim=0)
    return wasserstein_1d((a @ theta).T, (b @ theta).T, p).mean()
