import torch
from torch.autograd import Function


class SRGBToLinear(Function):
    """Decode sRGB values in [0, 1] to linear light (IEC 61966-2-1), elementwise."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        dark = x <= 0.04045
        bright = ((x.clamp(min=0.03) + 0.055) / 1.055).pow(2.4)
        return torch.where(dark, x / 12.92, bright)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        dark = x <= 0.0031308
        slope = 2.4 / 1.055 * ((x.clamp(min=1e-4) + 0.055) / 1.055).pow(1.4)
        return grad * torch.where(dark, torch.full_like(x, 1 / 12.92), slope)
