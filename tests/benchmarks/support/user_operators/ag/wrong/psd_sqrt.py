import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class _PSDPower(Function):
    @staticmethod
    def forward(ctx, A, inverse):
        w, V = torch.linalg.eigh(0.5 * (A + A.transpose(-1, -2)))
        s = w.sqrt()
        ctx.save_for_backward(s, V)
        ctx.inverse = inverse
        f = 1 / s if inverse else s
        return (V * f.unsqueeze(-2)) @ V.transpose(-1, -2)

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        s, V = ctx.saved_tensors
        # divided differences; no trouble with equal eigenvalues
        si, sj = s.unsqueeze(-1), s.unsqueeze(-2)
        K = 1 / (si + sj)
        if ctx.inverse:
            K = -K / (si * sj)
        Vt = V.transpose(-1, -2)
        gA = V @ (K * (Vt @ G @ V)) @ Vt
        return gA, None


def psd_sqrt(A, inverse=False):
    """Square root (or its inverse) of positive definite matrices (..., n, n), which are symmetrised first."""
    if A.shape[-1] != A.shape[-2]:
        raise ValueError("square matrices only")
    return _PSDPower.apply(A, inverse)
