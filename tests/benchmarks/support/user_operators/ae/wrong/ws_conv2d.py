import torch
import torch.nn.functional as F
from torch import nn


class _Standardize(torch.autograd.Function):
    """(w - mean) / sqrt(var + eps) * gain for every output channel"""

    @staticmethod
    def forward(ctx, w, gain, eps):
        ctx.save_for_backward(w, gain)
        ctx.eps = eps
        flat = w.flatten(1)
        mean = flat.mean(1, keepdim=True)
        rstd = torch.rsqrt(flat.var(1, keepdim=True, unbiased=False) + eps)
        return ((flat - mean) * rstd * gain).view_as(w)

    @staticmethod
    def backward(ctx, g):
        w, gain = ctx.saved_tensors
        flat, g = w.flatten(1), g.flatten(1)
        centred = flat - flat.mean(1, keepdim=True)
        rstd = torch.rsqrt(centred.pow(2).mean(1, keepdim=True) + ctx.eps)
        z = centred * rstd
        g_gain = (g * z).sum(1, keepdim=True)
        gz = g * gain
        g_flat = rstd * (gz - z * (gz * z).mean(1, keepdim=True))
        return g_flat.view_as(w), g_gain, None


class WSConv2d(nn.Module):
    """Scaled weight-standardised convolution (NF-nets)."""

    def __init__(self, cin, cout, kernel_size, stride=1, padding=0, groups=1, eps=1e-4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin // groups, kernel_size, kernel_size))
        self.gain = nn.Parameter(torch.ones(cout, 1))
        self.bias = nn.Parameter(torch.zeros(cout))
        self.kwargs = dict(stride=stride, padding=padding, groups=groups)
        self.eps = eps

    def forward(self, x):
        scale = self.weight[0].numel() ** -0.5
        w = _Standardize.apply(self.weight, self.gain * scale, self.eps)
        return F.conv2d(x, w, self.bias, **self.kwargs)
