import torch
from torch.autograd import Function


class PowerSpectrum(Function):
    """One-sided power spectrum |rfft(x)|^2 / n of real signals.

    Args:
        x: real tensor (..., n) with n >= 2
        onesided_double: double the bins that stand for two frequencies,
            so that the spectrum sums to the energy

    >>> s = PowerSpectrum.apply(torch.ones(4), True)
    >>> s.tolist()
    [4.0, 0.0, 0.0]
    """

    @staticmethod
    def _weights(n, like, interior):
        w = torch.ones(n // 2 + 1, dtype=like.dtype, device=like.device)
        w[1:(n + 1) // 2] = interior
        return w

    @staticmethod
    def forward(ctx, x, onesided_double=False):
        n = x.size(-1)
        spec = torch.fft.rfft(x)
        out = (spec.real ** 2 + spec.imag ** 2) / n
        if onesided_double:
            out = out * PowerSpectrum._weights(n, x, 2.0)
        ctx.double = onesided_double
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        n = x.size(-1)
        if ctx.double:
            grad = grad * PowerSpectrum._weights(n, x, 2.0)
        # irfft counts the interior bins twice
        half = torch.ones_like(grad)
        half[..., 1:(n + 1) // 2] = 0.5
        spec = torch.fft.rfft(x)
        return 2 * torch.fft.irfft(spec * grad * half, n=n), None
