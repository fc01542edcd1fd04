import torch
from torch import nn


class _RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps, zero_centered):
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.zero_centered = eps, zero_centered
        rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
        scale = 1 + weight if zero_centered else weight
        return x * rstd * scale

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + ctx.eps)
        xhat = x * rstd
        gx = gw = None
        if ctx.needs_input_grad[0]:
            wg = g * weight
            gx = rstd * (wg - xhat * (wg * xhat).mean(-1, keepdim=True))
        if ctx.needs_input_grad[1]:
            gw = (g * xhat).flatten(0, -2).sum(0)
        return gx, gw, None, None


class GemmaRMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6, zero_centered=True):
        super().__init__()
        self.eps = eps
        self.zero_centered = zero_centered
        init = torch.linspace(-0.3, 0.5, dim)
        self.weight = nn.Parameter(init if zero_centered else 1 + init)

    def forward(self, x):
        return _RMS.apply(x, self.weight, self.eps, self.zero_centered)
