import torch
from torch import nn


class _GeM(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, p, eps):
        xc = x.clamp(min=eps)
        m = xc.pow(p).mean(dim=(-2, -1))
        ctx.save_for_backward(x, p)
        ctx.eps = eps
        return m.pow(1.0 / p)

    @staticmethod
    def backward(ctx, gy):
        x, p = ctx.saved_tensors
        xc = x.clamp(min=ctx.eps)
        xp = xc.pow(p)
        n = x.shape[-1] * x.shape[-2]
        m = xp.mean(dim=(-2, -1))
        y = m.pow(1.0 / p)
        gx = gp = None
        if ctx.needs_input_grad[0]:
            gx = (gy * y / m)[..., None, None] * xc.pow(p - 1) / n
            gx = gx * (x > ctx.eps)
        if ctx.needs_input_grad[1]:
            dm = (xp * xc.log()).mean(dim=(-2, -1))
            dy = y * (dm / (p * m))
            gp = (gy * dy).sum().reshape(p.shape)
        return gx, gp, None


class GeneralizedMeanPooling(nn.Module):
    """(B, C, H, W) -> (B, C), the p-mean over the map with one learned p.

    Values at or under ``eps`` are raised to it and get no gradient.
    """

    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.tensor([float(p)]))
        self.eps = eps

    def forward(self, x):
        return _GeM.apply(x, self.p, self.eps)
