import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def thomas(dl, d, du, b):
    n = d.size(-1)
    cp, bp = [], []
    den = d[..., 0]
    bp.append(b[..., 0] / den)
    for i in range(1, n):
        cp.append(du[..., i - 1] / den)
        den = d[..., i] - dl[..., i - 1] * cp[-1]
        bp.append((b[..., i] - dl[..., i - 1] * bp[-1]) / den)
    x = [bp[-1]]
    for i in range(n - 2, -1, -1):
        x.append(bp[i] - cp[i] * x[-1])
    return torch.stack(x[::-1], dim=-1)


class TridiagonalSolve(Function):
    # dl (..., n-1), d (..., n), du (..., n-1), b (..., n)

    @staticmethod
    def forward(ctx, dl, d, du, b):
        x = thomas(dl, d, du, b)
        ctx.save_for_backward(dl, d, du, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        dl, d, du, x = ctx.saved_tensors
        lam = thomas(du, d, dl, g)
        g_low = -lam[..., 1:] * x[..., :-1]
        g_up = -lam[..., :-1] * x[..., 1:]
        return g_up, -lam * x, g_low, lam
