import torch
from torch import nn


class GeMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        ctx.eps = eps
        ctx.save_for_backward(x, p)
        return x.clamp(min=eps).pow(p).mean((-2, -1)).pow(1.0 / p)

    @staticmethod
    def backward(ctx, grad_out):
        x, p = ctx.saved_tensors
        xc = x.clamp(min=ctx.eps)
        xp = xc.pow(p)
        m = xp.mean((-2, -1), keepdim=True)
        out = m.pow(1.0 / p)
        g = grad_out[..., None, None]
        count = x.shape[-1] * x.shape[-2]
        grad_x = g * m.pow(1.0 / p - 1) * xc.pow(p - 1) / count * (x > ctx.eps)
        dlog = (xp * xc.log()).mean((-2, -1), keepdim=True) / (p * m)
        grad_p = (g * out * dlog).sum().reshape(p.shape)
        return grad_x, grad_p, None


class GeM(nn.Module):
    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.full((1,), float(p)))
        self.eps = eps

    def forward(self, x):
        return GeMFunction.apply(x, self.p, self.eps)
