"""Learnable band-pass front end: every filter is the difference of two windowed sincs."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class _BandPass(torch.autograd.Function):
    """low, band (n,) in cycles per sample; taps, window (K,) -> impulse responses (n, K)"""

    @staticmethod
    def forward(ctx, low, band, taps, window):
        ctx.save_for_backward(low, band, taps, window)
        f1, f2 = low.unsqueeze(1), (low + band).unsqueeze(1)
        return window * (2 * f2 * torch.sinc(2 * f2 * taps) - 2 * f1 * torch.sinc(2 * f1 * taps))

    @staticmethod
    def backward(ctx, grad):
        low, band, taps, window = ctx.saved_tensors
        g = grad * window
        upper = 2 * torch.cos(2 * math.pi * (low + band).unsqueeze(1) * taps)
        lower = 2 * torch.cos(2 * math.pi * low.unsqueeze(1) * taps)
        return (g * (upper - lower)).sum(1), (g * upper).sum(1), None, None


class BandFilters(nn.Module):
    def __init__(self, n_filters, width, stride=1):
        super().__init__()
        if width % 2 == 0:
            raise ValueError("width must be odd")
        edge = torch.linspace(0.02, 0.4, n_filters + 1)
        self.low = nn.Parameter(edge[:-1].clone())
        self.band = nn.Parameter(edge.diff())
        self.register_buffer("taps", torch.arange(width).float() - width // 2)
        self.register_buffer("window", torch.hamming_window(width, periodic=False))
        self.stride = stride

    def forward(self, wave):
        bank = _BandPass.apply(self.low.abs(), self.band.abs(), self.taps, self.window)
        return F.conv1d(wave, bank.unsqueeze(1), stride=self.stride, padding=self.taps.numel() // 2)
