"""Thomas algorithm for batches of tridiagonal systems."""
import torch
from torch import Tensor
from torch.autograd import Function


class TridiagonalSolve(Function):
    """Solve T x = rhs for tridiagonal T.

    Args:
        lower: (..., n - 1), T[i + 1, i]
        diag: (..., n)
        upper: (..., n - 1), T[i, i + 1]
        rhs: (..., n)

    No pivoting, so T should be diagonally dominant. All batch axes are the same.
    """

    @staticmethod
    def forward(ctx, lower: Tensor, diag: Tensor, upper: Tensor, rhs: Tensor) -> Tensor:
        n = diag.shape[-1]
        assert rhs.shape == diag.shape
        assert lower.shape == upper.shape == diag.shape[:-1] + (n - 1,)
        cs, ds = [], []
        for i in range(n):
            pivot, d = diag[..., i], rhs[..., i]
            if i > 0:
                pivot = pivot - lower[..., i - 1] * cs[-1]
                d = d - lower[..., i - 1] * ds[-1]
            cs.append(upper[..., i] / pivot if i < n - 1 else None)
            ds.append(d / pivot)
        xs = [ds[-1]]
        for i in range(n - 2, -1, -1):
            xs.append(ds[i] - cs[i] * xs[-1])
        x = torch.stack(xs[::-1], -1)
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    def backward(ctx, grad: Tensor):
        lower, diag, upper, x = ctx.saved_tensors
        # adjoint system: the off-diagonals change places
        w = TridiagonalSolve.apply(upper, diag, lower, grad)
        g_lower = -w[..., 1:] * x[..., :-1]
        g_upper = -w[..., :-1] * x[..., 1:]
        return g_lower, -w * x, g_upper, w


def implicit_diffusion(u: Tensor, kappa: Tensor, dt: float) -> Tensor:
    """Backward Euler step with conductivities kappa (..., n - 1) between the cells."""
    k = dt * kappa
    pad = torch.nn.functional.pad
    diag = 1 + pad(k, (0, 1)) + pad(k, (1, 0))
    return TridiagonalSolve.apply(-k, diag, -k, u)
