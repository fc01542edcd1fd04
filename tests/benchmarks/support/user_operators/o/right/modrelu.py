import torch
from torch import nn


class _ModReLUFn(torch.autograd.Function):
    @staticmethod
    def _modulus(z):
        r = z.abs()
        return torch.where(r > 0, r, torch.ones_like(r)), r

    @staticmethod
    def forward(ctx, z, b):
        ctx.save_for_backward(z, b)
        r, raw = _ModReLUFn._modulus(z)
        return z * (1 + b / r) * (raw + b > 0)

    @staticmethod
    def backward(ctx, grad):
        z, b = ctx.saved_tensors
        r, raw = _ModReLUFn._modulus(z)
        inner = (grad.conj() * z).real
        active = raw + b > 0
        g_z = grad * (1 + b / r) - b / r.pow(3) * inner * z
        g_b = (active * inner / r).reshape(-1, b.numel()).sum(0)
        return active * g_z, g_b


class ModReLU(nn.Module):
    """relu(|z| + b) z / |z| for complex z (..., F); zero stays zero."""

    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, z):
        if not z.is_complex():
            raise TypeError("ModReLU expects a complex input")
        if z.size(-1) != self.bias.numel():
            raise ValueError("wrong number of features")
        return _ModReLUFn.apply(z, self.bias)
