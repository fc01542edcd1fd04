import math

import torch
from torch import nn
from torch.autograd import Function
from torch.fft import irfft, rfft


def _omega(cache, x):
    key = x.shape[-1], x.dtype, x.device
    if key not in cache:
        cache[key] = 2 * math.pi * torch.fft.rfftfreq(x.shape[-1], dtype=x.dtype, device=x.device)
    return cache[key]


class _Shift(Function):
    @staticmethod
    def forward(ctx, x, shift, cache):
        ctx.save_for_backward(x, shift)
        ctx.cache = cache
        phase = torch.exp(-1j * shift[..., None] * _omega(cache, x))
        return irfft(rfft(x) * phase, n=x.shape[-1])

    @staticmethod
    def backward(ctx, grad):
        x, shift = ctx.saved_tensors
        n = x.shape[-1]
        omega = _omega(ctx.cache, x)
        phase = torch.exp(-1j * shift[..., None] * omega)
        gx = irfft(rfft(grad) * phase.conj(), n=n)
        gs = (grad * irfft(-1j * omega * rfft(x) * phase, n=n)).sum(-1)
        return gx, gs, None


class FourierShift(nn.Module):
    """Circular shift of signals (..., N) by real amounts (...), the frequencies are kept per length"""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x, shift):
        return _Shift.apply(x, shift, self.cache)
