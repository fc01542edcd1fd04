import torch


def thomas(dl, d, du, b):
    """No pivoting. dl, du: (..., n-1); d, b: (..., n)."""
    n = d.shape[-1]
    cp, dp = [], []
    for i in range(n):
        if i == 0:
            den = d[..., 0]
            rhs = b[..., 0]
        else:
            den = d[..., i] - dl[..., i - 1] * cp[-1]
            rhs = b[..., i] - dl[..., i - 1] * dp[-1]
        cp.append(du[..., i] / den if i < n - 1 else None)
        dp.append(rhs / den)
    x = [dp[-1]]
    for i in range(n - 2, -1, -1):
        x.append(dp[i] - cp[i] * x[-1])
    return torch.stack(x[::-1], dim=-1)


class TridiagSolve(torch.autograd.Function):

    @staticmethod
    def forward(ctx, dl, d, du, b):
        x = thomas(dl, d, du, b)
        ctx.save_for_backward(dl, d, du, x)
        return x

    @staticmethod
    def backward(ctx, g):
        dl, d, du, x = ctx.saved_tensors
        lam = TridiagSolve.apply(du, d, dl, g)
        g_dl = -lam[..., 1:] * x[..., :-1]
        g_d = -lam * x
        g_du = -lam[..., :-1] * x[..., 1:]
        return g_dl, g_d, g_du, lam
