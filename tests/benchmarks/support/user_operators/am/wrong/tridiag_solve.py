import torch
import torch.nn.functional as F


class Tridiag(torch.autograd.Function):
    """Thomas algorithm for ``lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i]``.

    All four tensors have shape (..., N). ``lower[..., 0]`` and ``upper[..., -1]`` are not used.
    No pivoting: the system should be diagonally dominant.
    """

    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        n = diag.shape[-1]
        a, b, c, d = (v.unbind(-1) for v in (lower, diag, upper, rhs))
        cp, dp = [c[0] / b[0]], [d[0] / b[0]]
        for i in range(1, n):
            m = b[i] - a[i] * cp[-1]
            dp.append((d[i] - a[i] * dp[-1]) / m)
            cp.append(c[i] / m)
        xs = [dp[-1]]
        for i in range(n - 2, -1, -1):
            xs.append(dp[i] - cp[i] * xs[-1])
        x = torch.stack(xs[::-1], -1)
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    def backward(ctx, gx):
        lower, diag, upper, x = ctx.saved_tensors
        # transposed system: the off-diagonals trade places and move by one row
        lo_t = upper
        up_t = lower
        lam = Tridiag.apply(lo_t, diag, up_t, gx)
        g_lower = -F.pad(lam[..., 1:] * x[..., :-1], (1, 0))
        g_upper = -F.pad(lam[..., :-1] * x[..., 1:], (0, 1))
        return g_lower, -lam * x, g_upper, lam
