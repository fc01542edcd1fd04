import torch
import torch.nn as nn
import torch.nn.functional as F


class _PN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        ctx.save_for_backward(x, p)
        ctx.eps = eps
        p = p[:, None]
        m = (x.abs().clamp_min(1e-12) ** p).mean(2, keepdim=True) + eps
        return x / m ** (1 / p)

    @staticmethod
    def backward(ctx, g):
        x, p = ctx.saved_tensors
        p = p[:, None]
        a = x.abs().clamp_min(1e-12)
        ap = a ** p
        m = ap.mean(2, keepdim=True) + ctx.eps
        n = m ** (1 / p)
        gn = -(g * x).sum(2, keepdim=True) / n ** 2
        gm = gn * n / (p * m)
        gx = g / n + gm * p * a ** (p - 1) * x.sign() / x.size(2)
        gp = gm * (ap * a.log()).mean(2, keepdim=True) - gn * n * m.log() / p ** 2
        return gx, gp.sum((0, 2)), None


class PNormCh(nn.Module):
    def __init__(self, c, eps=1e-5):
        super().__init__()
        self.q = nn.Parameter(torch.zeros(c))
        self.eps = eps

    def forward(self, x):
        return _PN.apply(x, 1 + F.softplus(self.q), self.eps)
