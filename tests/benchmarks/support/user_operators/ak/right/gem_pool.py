import torch
import torch.nn as nn


class _GeM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        ctx.save_for_backward(x, p)
        ctx.eps = eps
        return x.clamp(min=eps).pow(p).mean((-2, -1)).pow(1 / p)

    @staticmethod
    def backward(ctx, g):
        x, p = ctx.saved_tensors
        xc = x.clamp(min=ctx.eps)
        xp = xc.pow(p)
        m = xp.mean((-2, -1))
        y = m.pow(1 / p)
        scale = (g * y / m)[..., None, None] / (x.shape[-1] * x.shape[-2])
        gx = scale * xc.pow(p - 1) * (x >= ctx.eps)
        gp = g * y * ((xp * xc.log()).mean((-2, -1)) / (m * p) - m.log() / p ** 2)
        return gx, gp.sum().reshape(p.shape), None


class GeM(nn.Module):
    # generalised mean over H, W

    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.tensor([p]))
        self.eps = eps

    def forward(self, x):
        return _GeM.apply(x, self.p, self.eps)
