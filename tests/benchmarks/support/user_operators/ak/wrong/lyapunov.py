import torch


def _solve(a, q):
    n = a.shape[-1]
    eye = torch.eye(n, dtype=a.dtype, device=a.device)
    # row-major vec: vec(A X) = (A x I) vec X, vec(X A^T) = (I x A) vec X
    big = torch.kron(a.contiguous(), eye) + torch.kron(eye, a.contiguous())
    return torch.linalg.solve(big, q.reshape(-1)).reshape(n, n)


class Lyapunov(torch.autograd.Function):
    """X with A X + X A^T = Q; A and Q are (n, n), Q need not be symmetric."""

    @staticmethod
    def forward(ctx, a, q):
        x = _solve(a, q)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        lam = Lyapunov.apply(a.t(), g)
        return -2 * lam @ x.t(), lam
