import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SymmetricMatrixRoot(Function):
    """Square root or inverse square root of (batches of) positive definite matrices.

    Only the symmetric part of the argument counts.

    Args:
        matrix: `... x n x n`
        inverse: compute `A^{-1/2}` instead of `A^{1/2}`
    """

    @staticmethod
    def forward(ctx, matrix, inverse=False):
        if matrix.shape[-1] != matrix.shape[-2]:
            raise RuntimeError(f"expected square matrices, got {tuple(matrix.shape)}")
        evals, evecs = torch.linalg.eigh((matrix + matrix.mT) / 2)
        if bool((evals <= 0).any()):
            raise RuntimeError("matrix is not positive definite")
        roots = evals.sqrt()
        ctx.inverse = inverse
        ctx.save_for_backward(roots, evecs)
        diag = roots.reciprocal() if inverse else roots
        return (evecs * diag.unsqueeze(-2)) @ evecs.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        roots, evecs = ctx.saved_tensors
        si, sj = roots.unsqueeze(-1), roots.unsqueeze(-2)
        coeff = 1 / (si + sj)
        if ctx.inverse:
            coeff = -coeff / (si * sj)
        sym = (grad_output + grad_output.mT) / 2
        grad = evecs @ (coeff * (evecs.mT @ sym @ evecs)) @ evecs.mT
        return grad, None
