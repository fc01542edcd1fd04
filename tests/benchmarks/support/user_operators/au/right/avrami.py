import torch
from torch.autograd import Function


class _Avrami(Function):
    @staticmethod
    def forward(ctx, t, k, n):
        ctx.save_for_backward(t, k, n)
        return -torch.expm1(-((k * t) ** n))

    @staticmethod
    def backward(ctx, g):
        t, k, n = ctx.saved_tensors
        u = k * t
        un = u**n
        g = g * torch.exp(-un)
        du = g * n * u ** (n - 1)
        log_u = torch.log(torch.where(u > 0, u, torch.ones_like(u)))
        return du * k, (du * t).sum(), (g * un * log_u).sum()


def avrami(t, k, n):
    """Transformed fraction 1 - exp(-(k t)^n); t >= 0 (N,), rate k and exponent n >= 1 scalars"""
    return _Avrami.apply(t, k, n)
