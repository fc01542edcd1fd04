"""Softplus for signed-distance MLPs, whose normals are differentiated again (eikonal term)."""
import torch
from torch import Tensor


class _SoftplusGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g: Tensor, x: Tensor, beta: float, threshold: float):
        ctx.save_for_backward(g, x)
        ctx.beta, ctx.threshold = beta, threshold
        s = torch.sigmoid(beta * x)
        return torch.where(beta * x > threshold, g, g * s)

    @staticmethod
    def backward(ctx, h: Tensor):
        g, x = ctx.saved_tensors
        bx = ctx.beta * x
        linear = bx > ctx.threshold
        s = torch.sigmoid(bx)
        gg = torch.where(linear, h, h * s)
        gx = torch.where(linear, torch.zeros_like(h), h * g * ctx.beta * s * (1 - s))
        return gg, gx, None, None


class SDFSoftplus(torch.autograd.Function):
    """log(1 + exp(beta x)) / beta, the identity where beta x > threshold"""

    @staticmethod
    def forward(ctx, x: Tensor, beta: float = 100.0, threshold: float = 20.0):
        ctx.save_for_backward(x)
        ctx.beta, ctx.threshold = beta, threshold
        return torch.nn.functional.softplus(x, beta, threshold)

    @staticmethod
    def backward(ctx, g: Tensor):
        (x,) = ctx.saved_tensors
        return _SoftplusGrad.apply(g, x, ctx.beta, ctx.threshold), None, None
