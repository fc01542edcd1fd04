import math

import torch


class SpectralDerivative(torch.autograd.Function):
    """d^n u / dx^n of periodic samples u (..., N) on a domain of the given length, by FFT.

    For odd orders the Nyquist mode of even N is dropped, as usual.
    """

    @staticmethod
    def symbol(n, order, length, like):
        k = torch.fft.rfftfreq(n, 1.0 / n, dtype=like.dtype, device=like.device)
        if order % 2 and n % 2 == 0:
            k = torch.cat([k[:-1], k.new_zeros(1)])
        return (2j * math.pi * k / length) ** order

    @staticmethod
    def forward(ctx, u, order=1, length=2 * math.pi):
        if u.is_complex():
            raise TypeError("u must be real")
        ctx.order, ctx.length = order, length
        s = SpectralDerivative.symbol(u.shape[-1], order, length, u)
        return torch.fft.irfft(torch.fft.rfft(u) * s, n=u.shape[-1])

    @staticmethod
    def backward(ctx, g):
        s = SpectralDerivative.symbol(g.shape[-1], ctx.order, ctx.length, g)
        return torch.fft.irfft(torch.fft.rfft(g) * s, n=g.shape[-1]), None, None
