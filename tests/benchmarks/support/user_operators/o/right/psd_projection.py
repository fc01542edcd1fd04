import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class NearestPSD(Function):
    """Projection of the symmetric part of A (..., n, n), real, onto the positive semidefinite cone."""

    @staticmethod
    def forward(ctx, a):
        if a.is_complex():
            raise TypeError("real matrices only")
        lam, vec = torch.linalg.eigh(0.5 * (a + a.mT))
        ctx.save_for_backward(lam, vec)
        return (vec * lam.clamp(min=0).unsqueeze(-2)) @ vec.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        lam, vec = ctx.saved_tensors
        f = lam.clamp(min=0)
        pos = (lam > 0).to(lam.dtype)
        gap = lam.unsqueeze(-1) - lam.unsqueeze(-2)
        safe = torch.where(gap.abs() > 1e-10, gap, torch.ones_like(gap))
        ratio = torch.where(gap.abs() > 1e-10, (f.unsqueeze(-1) - f.unsqueeze(-2)) / safe, pos.unsqueeze(-1))
        inner = vec.mT @ (0.5 * (grad + grad.mT)) @ vec
        return vec @ (ratio * inner) @ vec.mT
