import torch
import torch.nn as nn
import torch.nn.functional as F


class _Standardize(torch.autograd.Function):

    @staticmethod
    def forward(ctx, w, gain, eps):
        mu = w.mean(1, keepdim=True)
        std = (w.var(1, unbiased=False, keepdim=True) + eps).sqrt()
        ctx.save_for_backward(w, gain)
        ctx.eps = eps
        return gain[:, None] * (w - mu) / std

    @staticmethod
    def backward(ctx, g):
        w, gain = ctx.saved_tensors
        std = (w.var(1, unbiased=False, keepdim=True) + ctx.eps).sqrt()
        z = (w - w.mean(1, keepdim=True)) / std
        g_gain = (g * z).sum(1)
        gz = g * gain[:, None]
        gw = (gz - gz.mean(1, keepdim=True) - z * (gz * z).mean(1, keepdim=True)) / std
        return gw, g_gain, None


class StdWeightLinear(nn.Module):
    def __init__(self, fin, fout, eps=1e-4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(fout, fin))
        self.gain = nn.Parameter(torch.ones(fout))
        self.bias = nn.Parameter(torch.zeros(fout))
        self.eps = eps

    def forward(self, x):
        return F.linear(x, _Standardize.apply(self.weight, self.gain, self.eps), self.bias)
