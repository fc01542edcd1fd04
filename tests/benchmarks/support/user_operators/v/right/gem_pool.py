import torch
from torch import nn


class GeMFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        ctx.save_for_backward(x, p)
        ctx.eps = eps
        return x.clamp(min=eps).pow(p).mean((-2, -1)).pow(1 / p)

    @staticmethod
    def backward(ctx, gy):
        x, p = ctx.saved_tensors
        xc = x.clamp(min=ctx.eps)
        xp = xc.pow(p)
        m = xp.mean((-2, -1))
        y = m.pow(1 / p)
        n = x.shape[-1] * x.shape[-2]
        gx = (gy * y / m)[..., None, None] * xp / xc / n * (x > ctx.eps)
        dlog = (xp * xc.log()).mean((-2, -1)) / (p * m) - m.log() / p ** 2
        gp = (gy * y * dlog).sum().view_as(p)
        return gx, gp, None


class GeM(nn.Module):

    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.ones(1) * p)
        self.eps = eps

    def forward(self, x):
        return GeMFn.apply(x, self.p, self.eps)

    def extra_repr(self):
        return f"p={self.p.item():.4f}, eps={self.eps}"
