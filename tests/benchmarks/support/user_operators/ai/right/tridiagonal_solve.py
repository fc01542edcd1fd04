import torch


def _thomas(lower, diag, upper, rhs):
    n = diag.size(-1)
    cp, dp = [], []
    for i in range(n):
        if i == 0:
            piv = diag[..., 0]
            num = rhs[..., 0]
        else:
            piv = diag[..., i] - lower[..., i - 1] * cp[-1]
            num = rhs[..., i] - lower[..., i - 1] * dp[-1]
        cp.append(upper[..., i] / piv if i < n - 1 else None)
        dp.append(num / piv)
    x = [dp[-1]]
    for i in range(n - 2, -1, -1):
        x.append(dp[i] - cp[i] * x[-1])
    return torch.stack(x[::-1], -1)


class TridiagonalSolve(torch.autograd.Function):
    """Solves T x = rhs; lower and upper are (..., n - 1), diag and rhs (..., n)."""

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
