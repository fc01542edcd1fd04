import torch
from torch import nn


class _LpPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, p):
        ctx.save_for_backward(x)
        ctx.k, ctx.p = k, p
        n = x.shape[-1] // k
        w = x[..., :n * k].unflatten(-1, (n, k))
        return w.abs().pow(p).sum(-1).pow(1 / p)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        k, p = ctx.k, ctx.p
        n = x.shape[-1] // k
        w = x[..., :n * k].unflatten(-1, (n, k))
        y = w.abs().pow(p).sum(-1).pow(1 / p)
        g = g / y.clamp(min=1e-12).pow(p - 1)
        gw = g[..., None] * w.abs().pow(p - 1) * w.sign()
        return torch.nn.functional.pad(gw.flatten(-2), (0, x.shape[-1] - n * k)), None, None


class LpPool(nn.Module):
    """Lp norm over windows of k without overlap; a rest shorter than k is dropped."""

    def __init__(self, k, p=3):
        super().__init__()
        self.k, self.p = k, p

    def forward(self, x):
        return _LpPool.apply(x, self.k, self.p)
