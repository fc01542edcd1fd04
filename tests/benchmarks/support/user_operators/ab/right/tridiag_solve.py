import torch


def _thomas(lower, diag, upper, rhs):
    # rhs (k, n)
    n = diag.shape[0]
    c, d = [], []
    for i in range(n):
        den = diag[i] if i == 0 else diag[i] - lower[i - 1] * c[i - 1]
        c.append(upper[i] / den if i < n - 1 else None)
        d.append(rhs[:, i] / den if i == 0 else (rhs[:, i] - lower[i - 1] * d[i - 1]) / den)
    x = [d[-1]]
    for i in range(n - 2, -1, -1):
        x.append(d[i] - c[i] * x[-1])
    return torch.stack(x[::-1], 1)


class TridiagonalSolve(torch.autograd.Function):
    """Solves the diagonally dominant tridiagonal system of an implicit time step for many right sides.

    lower (n - 1,), diag (n,), upper (n - 1,), rhs (..., n).
    """

    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        ctx.save_for_backward(lower, diag, upper, rhs)
        return _thomas(lower, diag, upper, rhs.reshape(-1, diag.shape[0])).reshape(rhs.shape)

    @staticmethod
    def backward(ctx, grad):
        lower, diag, upper, rhs = ctx.saved_tensors
        n = diag.shape[0]
        lam = _thomas(upper, diag, lower, grad.reshape(-1, n))
        if any(ctx.needs_input_grad[:3]):
            x = _thomas(lower, diag, upper, rhs.reshape(-1, n))
            g_diag = -(lam * x).sum(0)
            g_lower = -(lam[:, 1:] * x[:, :-1]).sum(0)
            g_upper = -(lam[:, :-1] * x[:, 1:]).sum(0)
        else:
            g_lower = g_diag = g_upper = None
        return g_lower, g_diag, g_upper, lam.reshape(rhs.shape)
