import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _InstanceStandardize(torch.autograd.Function):
    """(x - mean_t) / sqrt(var_t + eps) along dim 1, with the mean and the deviation."""

    @staticmethod
    def forward(ctx, x, eps):
        mean = x.mean(1, keepdim=True)
        centred = x - mean
        var = centred.square().mean(1, keepdim=True)
        std = (var + eps).sqrt()
        z = centred / std
        ctx.save_for_backward(centred, var)
        ctx.eps = eps
        return z, mean, std

    @staticmethod
    @once_differentiable
    def backward(ctx, g, g_mean, g_std):
        centred, var = ctx.saved_tensors
        std = (var + ctx.eps).sqrt()
        z = centred / var.sqrt()
        gx = (g - g.mean(1, keepdim=True) - z * (g * z).mean(1, keepdim=True)) / std
        gx = gx + (g_mean + g_std * z) / centred.shape[1]
        return gx, None


class RevIN(nn.Module):
    """Reversible instance normalisation of series (batch, time, channels)."""

    def __init__(self, channels, eps=1e-2, affine=True):
        super().__init__()
        self.eps = eps
        self.affine = affine
        if affine:
            self.gain = nn.Parameter(torch.linspace(0.8, 1.3, channels))
            self.shift = nn.Parameter(torch.linspace(-0.1, 0.1, channels))

    def forward(self, x, mode="norm"):
        z, mean, std = _InstanceStandardize.apply(x, self.eps)
        if self.affine:
            z = z * self.gain + self.shift
        if mode == "norm":
            return z
        if mode == "roundtrip":
            z = torch.tanh(z)
            if self.affine:
                z = (z - self.shift) / self.gain
            return z * std + mean
        raise NotImplementedError(mode)
