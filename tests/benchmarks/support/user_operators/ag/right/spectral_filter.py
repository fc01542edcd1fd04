import torch
from torch.autograd import Function
import torch.fft as fft


class SpectralFilter(Function):
    """y = irfft(rfft(x) * (re + i im)) along the last axis; re and im have n//2+1 entries."""

    @staticmethod
    def forward(ctx, x, re, im):
        n = x.shape[-1]
        assert re.shape[-1] == n // 2 + 1
        X = fft.rfft(x)
        ctx.save_for_backward(x, re, im)
        return fft.irfft(X * torch.complex(re, im), n=n)

    @staticmethod
    def backward(ctx, g):
        x, re, im = ctx.saved_tensors
        n = x.shape[-1]
        G = fft.rfft(g)
        gx = gre = gim = None
        if ctx.needs_input_grad[0]:
            gx = fft.irfft(G * torch.complex(re, -im), n=n)
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            # every bin but DC (and Nyquist for even n) stands for two of the full spectrum
            mult = torch.full((n // 2 + 1,), 2.0 / n, dtype=g.dtype, device=g.device)
            mult[0] = 1.0 / n
            if n % 2 == 0:
                mult[-1] = 1.0 / n
            gH = fft.rfft(x).conj() * G * mult
            gre = gH.real.sum_to_size(re.shape)
            gim = gH.imag.sum_to_size(im.shape)
        return gx, gre, gim
