import torch
from torch import nn


class GeMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        ctx.save_for_backward(x, p)
        ctx.eps = eps
        return x.clamp(min=eps).pow(p).mean((-2, -1)).pow(1.0 / p)

    @staticmethod
    def backward(ctx, g):
        x, p = ctx.saved_tensors
        n = x.shape[-1] * x.shape[-2]
        z = x.clamp(min=ctx.eps)
        m = z.pow(p).mean((-2, -1))
        y = m.pow(1 / p)
        gx = gp = None
        if ctx.needs_input_grad[0]:
            gx = (g * y / m)[..., None, None] * z.pow(p - 1) / n * (x > ctx.eps)
        if ctx.needs_input_grad[1]:
            dlog = (z.pow(p) * z.log()).mean((-2, -1)) / (p * m) - m.log() / p**2
            gp = (g * y * dlog).sum().reshape(p.shape)
        return gx, gp, None


class GeM(nn.Module):
    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.ones(1) * p)
        self.eps = eps

    def forward(self, x):
        return GeMFunction.apply(x, self.p, self.eps)
