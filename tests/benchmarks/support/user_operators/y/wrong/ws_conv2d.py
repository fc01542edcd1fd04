import torch
import torch.nn as nn
import torch.nn.functional as F


class _Standardize(torch.autograd.Function):
    """(w - mean) / sqrt(var * fan_in + eps) * gain over all but the first axis (NF-Nets)"""

    @staticmethod
    def forward(ctx, w, gain, eps):
        ctx.save_for_backward(w, gain)
        ctx.eps = eps
        flat = w.flatten(1)
        n = flat.shape[1]
        c = flat - flat.mean(1, keepdim=True)
        inv = torch.rsqrt(c.square().mean(1, keepdim=True) * n + eps)
        return (c * inv * gain[:, None]).view_as(w)

    @staticmethod
    def backward(ctx, g):
        w, gain = ctx.saved_tensors
        flat, g = w.flatten(1), g.flatten(1)
        c = flat - flat.mean(1, keepdim=True)
        inv = torch.rsqrt(c.square().sum(1, keepdim=True) + ctx.eps)
        hat = c * inv
        ggain = (g * hat).sum(1)
        g = g * gain[:, None]
        gw = inv * (g - g.mean(1, keepdim=True) - hat * (g * hat).mean(1, keepdim=True))
        return gw.reshape(w.shape), ggain, None


class WSConv2d(nn.Conv2d):
    def __init__(self, *args, eps=1e-4, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = nn.Parameter(torch.ones(self.out_channels))
        self.eps = eps

    def forward(self, x):
        w = _Standardize.apply(self.weight, self.gain, self.eps)
        return F.conv2d(x, w, self.bias, self.stride, self.padding, self.dilation, self.groups)
