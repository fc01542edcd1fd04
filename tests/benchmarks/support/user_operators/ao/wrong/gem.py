import torch
import torch.nn as nn


class _GeM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        ctx.eps = eps
        y = x.clamp(min=eps).pow(p).mean((-2, -1)).pow(1 / p)
        ctx.save_for_backward(x, p, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, p, y = ctx.saved_tensors
        xc = x.clamp(min=ctx.eps)
        n = x.shape[-1] * x.shape[-2]
        gy = (g * y.pow(1 - p)).unsqueeze(-1).unsqueeze(-1)
        gx = gy * xc.pow(p - 1) / n
        xp = xc.pow(p)
        m = xp.mean((-2, -1))
        gp = (g * y * ((xp * xc.log()).mean((-2, -1)) / (m * p) - m.log() / p ** 2)).sum()
        return gx, gp.reshape(p.shape), None


class GeMPool(nn.Module):
    """Generalised mean pooling (Radenovic et al.), (B, C, H, W) -> (B, C)"""

    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.ones(1) * p)
        self.eps = eps

    def forward(self, x):
        return _GeM.apply(x, self.p, self.eps)
