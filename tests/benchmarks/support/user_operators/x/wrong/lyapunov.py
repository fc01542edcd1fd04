import torch


def solve_lyapunov(A, Q):
    n = A.shape[0]
    eye = torch.eye(n, dtype=A.dtype, device=A.device)
    A = A.contiguous()
    M = torch.kron(A, eye) + torch.kron(eye, A)
    return torch.linalg.solve(M, Q.reshape(-1)).reshape(n, n)


class LyapunovSolve(torch.autograd.Function):
    """X with A X + X A^T = Q (n x n each)."""

    @staticmethod
    def forward(ctx, A, Q):
        X = solve_lyapunov(A, Q)
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, G):
        A, X = ctx.saved_tensors
        S = solve_lyapunov(A.t(), G)
        return -(S @ X.t() + S @ X), S
