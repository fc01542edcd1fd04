import torch
from torch import nn
from torch.autograd import Function


class _PReLU(Function):
    @staticmethod
    def forward(ctx, x, a):
        a_ = a.view(1, -1, *[1] * (x.dim() - 2))
        y = torch.where(x > 0, x, a_ * x)
        ctx.save_for_backward(x, a)
        return y

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        a_ = a.view(1, -1, *[1] * (x.dim() - 2))
        pos = a_ * x > 0
        gx = torch.where(pos, g, a_ * g)
        ga = torch.where(pos, torch.zeros_like(x), g * x).transpose(0, 1).flatten(1).sum(1)
        return gx, ga


class ChannelPReLU(nn.Module):
    """One slope per channel, input (N, C, *)."""

    def __init__(self, channels, init=0.25):
        super().__init__()
        self.weight = nn.Parameter(torch.full((channels,), init))

    def forward(self, x):
        return _PReLU.apply(x, self.weight)
