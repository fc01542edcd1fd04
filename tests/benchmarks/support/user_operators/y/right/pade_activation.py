import torch
import torch.nn as nn


def _powers(x, n):
    return torch.stack([x**i for i in range(n)], -1)


class _SafePade(torch.autograd.Function):
    """P(x) / (1 + |b_1 x + ... + b_n x^n|)"""

    @staticmethod
    def forward(ctx, x, num, den):
        ctx.save_for_backward(x, num, den)
        P = _powers(x, len(num)) @ num
        A = (_powers(x, len(den)) @ den) * x
        return P / (1 + A.abs())

    @staticmethod
    def backward(ctx, g):
        x, num, den = ctx.saved_tensors
        m, n = len(num), len(den)
        xp, xq = _powers(x, m), _powers(x, n)
        P, A = xp @ num, (xq @ den) * x
        Q = 1 + A.abs()
        dP = xp[..., :-1] @ (num[1:] * torch.arange(1, m, device=x.device, dtype=x.dtype))
        dA = xq @ (den * torch.arange(1, n + 1, device=x.device, dtype=x.dtype))
        dQ = A.sign() * dA
        gx = g * (dP / Q - P * dQ / Q**2)
        gnum = ((g / Q)[..., None] * xp).reshape(-1, m).sum(0)
        gden = ((-g * P / Q**2 * A.sign() * x)[..., None] * xq).reshape(-1, n).sum(0)
        return gx, gnum, gden


class PadeActivationUnit(nn.Module):
    def __init__(self, m=4, n=3):
        super().__init__()
        self.num = nn.Parameter(torch.empty(m).normal_(std=0.5))
        self.den = nn.Parameter(torch.empty(n).normal_(std=0.5))

    def forward(self, x):
        return _SafePade.apply(x, self.num, self.den)
