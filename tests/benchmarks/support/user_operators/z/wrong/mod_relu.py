import torch
from torch import nn


class _ModReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, bias, eps):
        r = z.abs().clamp_min(eps)
        b = bias.unsqueeze(-1)
        ctx.save_for_backward(z, b)
        ctx.eps = eps
        return z * (torch.relu(r + b) / r)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        r = z.abs().clamp_min(ctx.eps)
        on = (r + b) > 0
        along = (g * z).real / r
        gz = torch.where(on, g * (1 + b / r), torch.zeros_like(g))
        radial = torch.where(on & (z.abs() > ctx.eps), -b / r, torch.zeros_like(r))
        gz = gz + along * radial * z / r
        gb = torch.where(on, along, torch.zeros_like(along))
        return gz, gb.sum((0, 2)), None


class ModReLU(nn.Module):
    """modReLU for complex features (B, C, T): shrinks the modulus, keeps the phase."""

    def __init__(self, channels, eps=1e-8):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, z):
        return _ModReLU.apply(z, self.bias, self.eps)
