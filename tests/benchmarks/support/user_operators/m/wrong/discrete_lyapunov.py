import torch


def _solve(a, q):
    n = a.shape[0]
    lhs = torch.eye(n * n, dtype=a.dtype, device=a.device) - torch.kron(a.contiguous(), a.contiguous())
    return torch.linalg.solve(lhs, q.reshape(-1)).view(n, n)


class DiscreteLyapunov(torch.autograd.Function):
    """Solve X = A X A^T + Q for X. A, Q: (n, n); Q need not be symmetric."""

    @staticmethod
    def forward(ctx, a, q):
        if a.shape != q.shape or a.dim() != 2:
            raise ValueError("A and Q must be square matrices of one size")
        x = _solve(a, q)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad_x):
        a, x = ctx.saved_tensors
        s = _solve(a, grad_x)
        grad_a = s @ a @ x.t() + s.t() @ a @ x
        return grad_a, s
