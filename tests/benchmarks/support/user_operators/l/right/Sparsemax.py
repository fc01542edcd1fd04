"""Sparsemax (Martins & Astudillo, 2016)."""
import torch
import torch.nn as nn
from torch.autograd import Function


def _threshold(z, dim):
    """tau such that sum(max(z - tau, 0)) == 1 along dim."""
    z_sorted, _ = z.sort(dim=dim, descending=True)
    cumsum = z_sorted.cumsum(dim)
    shape = [1] * z.dim()
    shape[dim] = -1
    rho = torch.arange(1, z.size(dim) + 1, device=z.device, dtype=z.dtype).view(shape)
    support = 1 + rho * z_sorted > cumsum
    k = support.sum(dim=dim, keepdim=True)
    tau = cumsum.gather(dim, k - 1)
    return (tau - 1) / k.to(z.dtype)


class Sparsemax(Function):
    """Euclidean projection of the scores onto the probability simplex along ``dim``."""

    @staticmethod
    def forward(ctx, z, dim=-1):
        ctx.dim = dim
        z = z - z.amax(dim=dim, keepdim=True)
        out = torch.clamp(z - _threshold(z, dim), min=0)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        out, = ctx.saved_tensors
        support = (out > 0).to(out.dtype)
        total = (grad_output * support).sum(dim=ctx.dim, keepdim=True)
        mean = total / support.sum(dim=ctx.dim, keepdim=True)
        return support * (grad_output - mean), None


class SparsemaxLayer(nn.Module):
    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, z):
        return Sparsemax.apply(z, self.dim)
