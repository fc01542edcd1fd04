import math

import torch


class Carrier(torch.autograd.Function):
    """amp * cos(2 pi freq n / rate + phase) at integer sample positions n (any int64, e.g. of a
    long recording); freq in Hz and rate are plain numbers.  amp and phase broadcast with n."""

    @staticmethod
    def forward(ctx, amp, phase, n, freq, rate):
        assert not n.is_floating_point()
        turns = torch.remainder(n.double() * freq / rate, 1.0)
        arg = (2 * math.pi * turns).to(amp.dtype) + phase
        ctx.save_for_backward(amp, phase, n)
        ctx.freq, ctx.rate = freq, rate
        return amp * torch.cos(arg)

    @staticmethod
    def backward(ctx, grad):
        amp, phase, n = ctx.saved_tensors
        turns = torch.remainder(n.double() * ctx.freq / ctx.rate, 1.0)
        arg = (2 * math.pi * turns).to(amp.dtype) + phase
        g_amp = (grad * torch.cos(arg)).sum_to_size(amp.shape)
        g_phase = (-grad * amp * torch.sin(arg)).sum_to_size(phase.shape)
        return g_amp, g_phase, None, None, None
