import torch


def _solve(A, Q):
    n = A.shape[0]
    lhs = torch.eye(n * n, dtype=A.dtype, device=A.device) - torch.kron(A, A)
    return torch.linalg.solve(lhs, Q.reshape(-1)).reshape(n, n)


class _DLyap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, Q):
        X = _solve(A, Q)
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, G):
        A, X = ctx.saved_tensors
        S = _solve(A.t(), G)
        return S @ A @ X.t(), S


def discrete_lyapunov(A, Q, symmetrize=True):
    if symmetrize:
        Q = 0.5 * (Q + Q.t())
    return _DLyap.apply(A, Q)
