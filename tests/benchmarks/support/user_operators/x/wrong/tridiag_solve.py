import numpy as np
import torch
from torch.autograd.function import once_differentiable


def _thomas(lower, diag, upper, rhs):
    n = len(diag)
    c, d = np.zeros(n), np.zeros(n)
    c[0], d[0] = (upper[0] / diag[0] if n > 1 else 0.0), rhs[0] / diag[0]
    for i in range(1, n):
        den = diag[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / den
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / den
    x = d.copy()
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


class TridiagonalSolve(torch.autograd.Function):
    """Solve A x = rhs; lower and upper have n - 1 entries, lower[i] = A[i + 1, i]."""

    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        x = _thomas(*(t.detach().cpu().numpy() for t in (lower, diag, upper, rhs)))
        x = torch.as_tensor(x, dtype=rhs.dtype, device=rhs.device)
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        lower, diag, upper, x = ctx.saved_tensors
        z = _thomas(*(t.detach().cpu().numpy() for t in (lower, diag, upper, g)))
        z = torch.as_tensor(z, dtype=x.dtype, device=x.device)
        return -z[1:] * x[:-1], -z * x, -z[:-1] * x[1:], z
