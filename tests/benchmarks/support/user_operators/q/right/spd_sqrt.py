import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SPDSqrt(Function):
    """Principal square root of symmetric positive definite matrices (..., n, n).

    Only the symmetric part of the input counts.
    """

    @staticmethod
    def forward(ctx, mat):
        if mat.is_complex():
            raise NotImplementedError("Hermitian matrices")
        if mat.shape[-1] != mat.shape[-2]:
            raise ValueError("square matrices only")
        lam, vec = torch.linalg.eigh(0.5 * (mat + mat.mT))
        if (lam <= 0).any():
            raise ValueError("not positive definite")
        root = lam.sqrt()
        ctx.save_for_backward(root, vec)
        return (vec * root.unsqueeze(-2)) @ vec.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        root, vec = ctx.saved_tensors
        inner = vec.mT @ (0.5 * (grad + grad.mT)) @ vec
        inner = inner / (root.unsqueeze(-1) + root.unsqueeze(-2))
        return vec @ inner @ vec.mT
