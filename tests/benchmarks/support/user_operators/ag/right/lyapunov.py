import torch
from torch.autograd import Function


class DiscreteLyapunov(Function):
    r"""Solves :math:`X = A X A^T + Q` for stable A. Dense Kronecker solve, n is small here."""

    @staticmethod
    def forward(ctx, A, Q):
        n = A.shape[0]
        if A.shape != (n, n) or Q.shape != (n, n):
            raise ValueError("A and Q must be square and of one size")
        eye = torch.eye(n * n, dtype=A.dtype, device=A.device)
        X = torch.linalg.solve(eye - torch.kron(A, A), Q.reshape(-1)).reshape(n, n)
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, G):
        A, X = ctx.saved_tensors
        S = DiscreteLyapunov.apply(A.t(), G)
        gA = S @ A @ X.t() + S.t() @ A @ X
        return gA, S
