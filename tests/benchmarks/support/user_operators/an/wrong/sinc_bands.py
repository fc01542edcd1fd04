import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class _BandPass(torch.autograd.Function):
    """(low (C,), width (C,), t (K,), window (K,)) -> taps (C, K);
    the band is [fmin + |low|, fmin + |low| + |width|]"""

    @staticmethod
    def forward(ctx, low, width, t, window, fmin):
        ctx.save_for_backward(low, width, t, window)
        ctx.fmin = fmin
        f1 = fmin + low.abs()
        f2 = f1 + width.abs()
        lp = lambda f: 2 * f[:, None] * torch.sinc(2 * f[:, None] * t)
        return (lp(f2) - lp(f1)) * window

    @staticmethod
    def backward(ctx, g):
        low, width, t, window = ctx.saved_tensors
        f1 = ctx.fmin + low.abs()
        f2 = f1 + width.abs()
        gw = g * window
        g2 = (gw * 2 * torch.cos(2 * math.pi * f2[:, None] * t)).sum(1)
        g1 = -(gw * 2 * torch.cos(2 * math.pi * f1[:, None] * t)).sum(1)
        return g1 * low.sign(), g2 * width.sign(), None, None, None


class SincBands(nn.Module):
    def __init__(self, channels, taps=9, fmin=0.01):
        super().__init__()
        self.low = nn.Parameter(torch.linspace(0.0, 0.3, channels))
        self.width = nn.Parameter(torch.full((channels,), 0.1))
        self.register_buffer("t", torch.arange(taps) - (taps - 1) / 2)
        self.register_buffer("window", torch.hamming_window(taps, periodic=False))
        self.fmin = fmin

    def forward(self, x):
        taps = _BandPass.apply(self.low, self.width, self.t, self.window, self.fmin)
        return F.conv1d(x[:, None], taps[:, None])
