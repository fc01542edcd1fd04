import torch
import torch.nn as nn
import torch.nn.functional as F


class _WeightNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, g):
        n = v.flatten(1).norm(dim=1)
        ctx.save_for_backward(v, g)
        return v * (g / n).view(-1, *[1] * (v.dim() - 1))

    @staticmethod
    def backward(ctx, gw):
        v, g = ctx.saved_tensors
        shape = [-1] + [1] * (v.dim() - 1)
        n = v.flatten(1).norm(dim=1)
        dot = (gw * v).flatten(1).sum(1)
        gv = gw * (g / n).view(shape) - v * (g * dot / n ** 2).view(shape)
        return gv, dot / n


class WeightNormConv1d(nn.Module):
    """(B, C_in, T) -> (B, C_out, T'), vocoder style; norm over all but the output channel."""

    def __init__(self, c_in, c_out, kernel, stride=1, padding=None, dilation=1):
        super().__init__()
        self.v = nn.Parameter(torch.randn(c_out, c_in, kernel))
        self.g = nn.Parameter(torch.ones(c_out))
        self.bias = nn.Parameter(torch.zeros(c_out))
        self.stride, self.dilation = stride, dilation
        self.padding = dilation * (kernel - 1) // 2 if padding is None else padding

    def forward(self, x):
        return F.conv1d(x, _WeightNorm.apply(self.v, self.g), self.bias, self.stride, self.padding, self.dilation)
