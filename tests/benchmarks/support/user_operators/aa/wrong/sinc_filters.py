import math

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _BandPass(torch.autograd.Function):
    """Windowed difference of two sinc low-passes; cut-offs in cycles per sample."""

    @staticmethod
    def forward(ctx, low, band, window, min_low, min_band):
        f1 = min_low + low.abs()
        f2 = (f1 + min_band + band.abs()).clamp(max=0.5)
        half = (window.numel() - 1) // 2
        t = torch.arange(-half, half + 1, dtype=low.dtype, device=low.device)
        lp = lambda f: 2 * f[:, None] * torch.sinc(2 * f[:, None] * t)
        ctx.save_for_backward(low, band, window, t)
        ctx.mins = min_low, min_band
        return (lp(f2) - lp(f1)) * window

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        low, band, window, t = ctx.saved_tensors
        min_low, min_band = ctx.mins
        f1 = min_low + low.abs()
        raw = f1 + min_band + band.abs()
        f2 = raw.clamp(max=0.5)
        gw = g * window
        d = lambda f: (gw * 2 * torch.cos(2 * math.pi * f[:, None] * t)).sum(1)
        g2 = d(f2)
        g1 = g2 - d(f1)
        return g1 * low.sign(), g2 * band.sign(), None, None, None


class SincConv(nn.Module):
    """Learnable band-pass front end, x (B, 1, T) -> (B, filters, T)."""

    def __init__(self, filters=2, kernel_size=5, min_low=0.01, min_band=0.02):
        super().__init__()
        assert kernel_size % 2 == 1
        self.low = nn.Parameter(torch.linspace(-0.1, 0.25, filters))
        self.band = nn.Parameter(torch.linspace(0.15, 0.3, filters))
        self.register_buffer("window", torch.hamming_window(kernel_size, periodic=False))
        self.mins = (min_low, min_band)

    def forward(self, x):
        h = _BandPass.apply(self.low, self.band, self.window, *self.mins)
        return nn.functional.conv1d(x, h.unsqueeze(1), padding=h.shape[1] // 2)
