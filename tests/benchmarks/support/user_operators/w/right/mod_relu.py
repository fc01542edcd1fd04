import torch
from torch import nn


class _ModReLU(torch.autograd.Function):
    # relu(|z| + b) z / |z|, |z| smoothed at the origin
    @staticmethod
    def forward(ctx, z, b, eps):
        ctx.save_for_backward(z, b)
        ctx.eps = eps
        r = (z.real**2 + z.imag**2 + eps).sqrt()
        return z * (torch.relu(r + b) / r)

    @staticmethod
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        r = (z.real**2 + z.imag**2 + ctx.eps).sqrt()
        on = (r + b > 0).to(r.dtype)
        along = (g.conj() * z).real
        gz = g * (torch.relu(r + b) / r) - z * (along * on * b / r**3)
        gb = (along * on / r).reshape(-1, b.shape[0]).sum(0)
        return gz, gb, None


class ModReLU(nn.Module):
    """Arjovsky et al. 2016, complex features (..., C)."""

    def __init__(self, channels, eps=1e-4):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, z):
        return _ModReLU.apply(z, self.bias, self.eps)
