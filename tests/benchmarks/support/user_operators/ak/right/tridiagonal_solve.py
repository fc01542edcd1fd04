import torch


def _thomas(lower, diag, upper, rhs):
    n = diag.shape[-1]
    c, d = [], [rhs[..., 0] / diag[..., 0]]
    piv = diag[..., 0]
    for i in range(1, n):
        c.append(upper[..., i - 1] / piv)
        piv = diag[..., i] - lower[..., i - 1] * c[-1]
        d.append((rhs[..., i] - lower[..., i - 1] * d[-1]) / piv)
    x = [d[-1]]
    for i in range(n - 2, -1, -1):
        x.append(d[i] - c[i] * x[-1])
    return torch.stack(x[::-1], dim=-1)


class TridiagonalSolve(torch.autograd.Function):
    # lower, upper: (B, n-1), diag, rhs: (B, n)

    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        x = _thomas(lower, diag, upper, rhs)
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    def backward(ctx, g):
        lower, diag, upper, x = ctx.saved_tensors
        lam = TridiagonalSolve.apply(upper, diag, lower, g)
        return -lam[..., 1:] * x[..., :-1], -lam * x, -lam[..., :-1] * x[..., 1:], lam
