import torch
from torch import nn


class _ActNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, logs):
        ctx.save_for_backward(x, bias, logs)
        pixels = x.shape[2] * x.shape[3]
        y = (x + bias[:, None, None]) * logs.exp()[:, None, None]
        return y, pixels * logs.sum().expand(x.shape[0])

    @staticmethod
    def backward(ctx, gy, gdet):
        x, bias, logs = ctx.saved_tensors
        gx = gy * logs.exp()[:, None, None]
        g_bias = gx.sum((0, 2, 3))
        g_logs = (gx * (x + bias[:, None, None])).sum((0, 2, 3))
        return gx, g_bias, g_logs + x.shape[2] * x.shape[3] * gdet.sum()


class ActNorm2d(nn.Module):
    """Glow's activation normalisation: returns y and log|det dy/dx| of every sample."""

    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.logs = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return _ActNorm.apply(x, self.bias, self.logs)
