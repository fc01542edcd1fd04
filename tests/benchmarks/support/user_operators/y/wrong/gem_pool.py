import torch
import torch.nn as nn


class GeMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        ctx.save_for_backward(x, p)
        ctx.eps = eps
        m = x.clamp(min=eps).pow(p.view(1, -1, 1, 1)).mean((-2, -1))
        return m.pow(1.0 / p)

    @staticmethod
    def backward(ctx, g):
        x, p = ctx.saved_tensors
        pw = p.view(1, -1, 1, 1)
        xc = x.clamp(min=ctx.eps)
        xp = xc**pw
        m = xp.mean((-2, -1), keepdim=True)
        y = m ** (1 / pw)
        g = g[..., None, None]
        n = x.shape[-1] * x.shape[-2]
        gx = g * y / m * xc ** (pw - 1) / n * (x > ctx.eps)
        d = (xp * xc.log()).mean((-2, -1), keepdim=True) / (pw * m)
        gp = g * y * d
        gp = gp.sum().reshape(p.shape) if p.numel() == 1 else gp.sum((0, 2, 3))
        return gx, gp, None


class GeM(nn.Module):
    """generalised mean pooling, (B, C, H, W) -> (B, C); p is shared or one per channel"""

    def __init__(self, p=3.0, eps=1e-6, channels=1):
        super().__init__()
        self.p = nn.Parameter(torch.full((channels,), float(p)))
        self.eps = eps

    def forward(self, x):
        return GeMFunction.apply(x, self.p, self.eps)
