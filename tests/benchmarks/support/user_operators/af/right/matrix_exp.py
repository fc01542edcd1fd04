import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ScaledMatrixExp(Function):
    """exp(t A) for A (n, n) and a scalar t."""

    @staticmethod
    def forward(ctx, A, t):
        E = torch.linalg.matrix_exp(t * A)
        ctx.save_for_backward(A, t, E)
        return E

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        A, t, E = ctx.saved_tensors
        n = A.shape[0]
        gA = gt = None
        if ctx.needs_input_grad[0]:
            # Frechet derivative from the exponential of a block matrix
            block = A.new_zeros(2 * n, 2 * n)
            block[:n, :n] = block[n:, n:] = t * A.t()
            block[:n, n:] = G
            gA = t * torch.linalg.matrix_exp(block)[:n, n:]
        if ctx.needs_input_grad[1]:
            gt = (G * (A @ E)).sum()
        return gA, gt
