import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class _SincFilters(torch.autograd.Function):
    @staticmethod
    def forward(ctx, low_, band_, window, min_low, min_band, rate):
        ctx.save_for_backward(low_, band_, window)
        ctx.conf = min_low, min_band, rate
        low = min_low + low_.abs()
        high = low + min_band + band_.abs()
        return (_lowpass(high, window, rate)[0] - _lowpass(low, window, rate)[0]) * window

    @staticmethod
    def backward(ctx, grad):
        low_, band_, window = ctx.saved_tensors
        min_low, min_band, rate = ctx.conf
        low = min_low + low_.abs()
        high = low + min_band + band_.abs()
        grad = grad * window
        g_high = (grad * _lowpass(high, window, rate)[1]).sum(1)
        g_low = -(grad * _lowpass(low, window, rate)[1]).sum(1)
        return (g_low + g_high) * low_.sign(), g_high, None, None, None, None


def _lowpass(cut, window, rate):
    # 2 f sinc(2 f t) at every tap, and its slope with respect to f
    n = window.shape[0]
    t = (torch.arange(n, dtype=cut.dtype, device=cut.device) - (n - 1) / 2) / rate
    f = cut.unsqueeze(1)
    h = 2 * f * torch.sinc(2 * f * t)
    return h / rate, 2 * torch.cos(2 * math.pi * f * t) / rate


class SincConv(nn.Module):
    """Convolution with windowed band pass filters whose edges are learnt.

    Arguments
    ---------
    out_channels : int
        Number of filters.
    kernel_size : int
        Odd number of taps.
    sample_rate, min_low_hz, min_band_hz : float
    stride : int

    Input ``(batch, 1, time)``, output ``(batch, out_channels, time')``.
    """

    def __init__(self, out_channels, kernel_size, sample_rate=16000.0, min_low_hz=50.0, min_band_hz=50.0, stride=1):
        super().__init__()
        if kernel_size % 2 == 0:
            raise ValueError("kernel_size must be odd")
        self.conf = min_low_hz, min_band_hz, sample_rate
        self.stride = stride
        edges = torch.linspace(30.0, sample_rate / 2 - min_low_hz - min_band_hz, out_channels + 1)
        self.low_hz_ = nn.Parameter(edges[:-1].clone())
        self.band_hz_ = nn.Parameter(edges.diff())
        self.register_buffer("window", torch.hamming_window(kernel_size, periodic=False))

    def forward(self, x):
        if x.dim() != 3 or x.shape[1] != 1:
            raise ValueError("expected (batch, 1, time)")
        filters = _SincFilters.apply(self.low_hz_, self.band_hz_, self.window, *self.conf)
        return F.conv1d(x, filters.unsqueeze(1), stride=self.stride)
