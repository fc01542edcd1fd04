import torch


def thomas(lower, diag, upper, rhs):
    n = diag.shape[-1]
    c, d = [], []
    for i in range(n):
        if i == 0:
            piv, r = diag[..., 0], rhs[..., 0]
        else:
            piv = diag[..., i] - lower[..., i - 1] * c[-1]
            r = rhs[..., i] - lower[..., i - 1] * d[-1]
        c.append(upper[..., i] / piv if i < n - 1 else None)
        d.append(r / piv)
    x = [d[-1]]
    for i in range(n - 2, -1, -1):
        x.append(d[i] - c[i] * x[-1])
    return torch.stack(x[::-1], -1)


class TridiagonalSolve(torch.autograd.Function):
    """lower (B, n-1), diag (B, n), upper (B, n-1), rhs (B, n). No pivoting."""

    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        x = thomas(lower, diag, upper, rhs)
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    def backward(ctx, g):
        lower, diag, upper, x = ctx.saved_tensors
        lam = thomas(upper, diag, lower, g)
        return (-lam[..., 1:] * x[..., :-1],
                -lam * x,
                -lam[..., :-1] * x[..., 1:],
                lam)
