import torch


def _solve(A, Q):
    n = A.shape[0]
    M = torch.eye(n * n, dtype=A.dtype, device=A.device) - torch.kron(A, A)
    return torch.linalg.solve(M, Q.reshape(-1)).reshape(n, n)


class DiscreteLyapunov(torch.autograd.Function):
    """X = A X A' + Q"""

    @staticmethod
    def forward(ctx, A, Q):
        X = _solve(A, Q)
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, G):
        A, X = ctx.saved_tensors
        S = _solve(A.t(), G)
        gA = 2 * S @ A @ X
        return gA, S
