import torch
from torch import nn


class _ModReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, b):
        ctx.save_for_backward(z, b)
        r = z.abs().clamp(min=1e-12)
        return torch.relu(r + b) * z / r

    @staticmethod
    def backward(ctx, grad):
        z, b = ctx.saved_tensors
        r = z.abs().clamp(min=1e-12)
        on = (r + b > 0).to(r.dtype)
        phase = z / r
        radial = (phase.conj() * grad).real
        gz = on * (grad + b / r * grad)
        return gz, (on * radial).flatten(0, -2).sum(0)


class ModReLU(nn.Module):
    """ReLU on the modulus with a learned threshold per channel (unitary RNNs); z (..., C) complex."""

    def __init__(self, channels):
        super().__init__()
        self.b = nn.Parameter(torch.zeros(channels))

    def forward(self, z):
        return _ModReLU.apply(z, self.b)
