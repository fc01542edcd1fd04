import torch
from torch.autograd.function import once_differentiable


def _solve(A, Q):
    n = A.shape[0]
    K = torch.eye(n * n, dtype=A.dtype, device=A.device) - torch.kron(A, A)
    return torch.linalg.solve(K, Q.reshape(-1)).reshape(n, n)


class DiscreteLyapunov(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, Q):
        X = _solve(A, Q)
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    @once_differentiable
    def backward(ctx, gX):
        A, X = ctx.saved_tensors
        S = _solve(A.t(), gX.contiguous())
        gA = S @ A @ X.t() + S.t() @ A @ X
        return gA, S


def solve_discrete_lyapunov(A, Q):
    """X with A X A^T - X + Q = 0. Q need not be symmetric."""
    return DiscreteLyapunov.apply(A, Q)
