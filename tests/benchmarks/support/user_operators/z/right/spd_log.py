import torch
from torch.autograd.function import once_differentiable


def _divided_differences(lam):
    """(log a - log b) / (a - b), and 1/a where the two coincide."""
    a, b = lam.unsqueeze(-1), lam.unsqueeze(-2)
    gap = a - b
    close = gap.abs() <= torch.finfo(lam.dtype).eps ** 0.5 * (a + b)
    safe = torch.where(close, torch.ones_like(gap), gap)
    return torch.where(close, 2.0 / (a + b), (a.log() - b.log()) / safe)


class SPDLog(torch.autograd.Function):
    """Matrix logarithm of symmetric positive definite matrices (diffusion tensors etc.)."""

    @staticmethod
    def forward(ctx, S):
        lam, Q = torch.linalg.eigh(0.5 * (S + S.mT))
        ctx.save_for_backward(lam, Q)
        return (Q * lam.log().unsqueeze(-2)) @ Q.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        lam, Q = ctx.saved_tensors
        sym = 0.5 * (grad + grad.mT)
        inner = _divided_differences(lam) * (Q.mT @ sym @ Q)
        return Q @ inner @ Q.mT
