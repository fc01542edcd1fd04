import torch
import torch.nn.functional as F
from torch import nn


class DilationFunction(torch.autograd.Function):
    """Grey-scale dilation, max over the window of x + s.   x (B, C, H, W), s (C, k, k)"""

    @staticmethod
    def forward(ctx, x, s):
        B, C, H, W = x.shape
        k = s.shape[-1]
        p = k // 2
        padded = F.pad(x, (p, p, p, p), value=float("-inf"))
        cols = F.unfold(padded, k).reshape(B, C, k * k, H * W)
        y, arg = (cols + s.reshape(1, C, k * k, 1)).max(2)
        ctx.save_for_backward(arg)
        ctx.shape, ctx.k = x.shape, k
        return y.reshape(B, C, H, W)

    @staticmethod
    def backward(ctx, g):
        (arg,) = ctx.saved_tensors
        B, C, H, W = ctx.shape
        k, p = ctx.k, ctx.k // 2
        g = g.reshape(B, C, 1, H * W)
        cols = g.new_zeros(B, C, k * k, H * W).scatter(2, arg.unsqueeze(2), g)
        gx = F.fold(cols.reshape(B, C * k * k, H * W), (H + 2 * p, W + 2 * p), k)
        gx = gx[..., p : p + H, p : p + W]
        gs = cols.sum((0, 3)).reshape(C, k, k)
        return gx, gs


class Dilation2d(nn.Module):
    def __init__(self, channels, kernel_size=3):
        super().__init__()
        self.s = nn.Parameter(0.1 * torch.randn(channels, kernel_size, kernel_size))

    def forward(self, x):
        return DilationFunction.apply(x, self.s)
