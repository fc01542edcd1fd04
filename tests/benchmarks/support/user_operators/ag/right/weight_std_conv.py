import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class WeightStandardize(Function):
    @staticmethod
    def forward(ctx, w, gain, eps):
        flat = w.flatten(1)
        h = (flat - flat.mean(1, keepdim=True)) * torch.rsqrt(flat.var(1, keepdim=True, unbiased=False) + eps)
        ctx.save_for_backward(w, gain)
        ctx.eps = eps
        return (h * gain[:, None]).view_as(w)

    @staticmethod
    def backward(ctx, g):
        w, gain = ctx.saved_tensors
        flat = w.flatten(1)
        g = g.flatten(1)
        rstd = torch.rsqrt(flat.var(1, keepdim=True, unbiased=False) + ctx.eps)
        h = (flat - flat.mean(1, keepdim=True)) * rstd
        ggain = (g * h).sum(1)
        g = g * gain[:, None]
        gw = rstd * (g - g.mean(1, keepdim=True) - h * (g * h).mean(1, keepdim=True))
        return gw.view_as(w), ggain, None


class WSConv2d(nn.Conv2d):
    """Conv2d with scaled weight standardisation (NF-Nets)."""

    def __init__(self, *args, eps=1e-4, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = nn.Parameter(torch.ones(self.out_channels))
        self.eps = eps

    def forward(self, x):
        w = WeightStandardize.apply(self.weight, self.gain, self.eps)
        return F.conv2d(x, w, self.bias, self.stride, self.padding, self.dilation, self.groups)
