import torch
from torch.fft import irfft, rfft


class FFTConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, k):
        # u (batch, channels, n), k (channels, n); circular
        ctx.save_for_backward(u, k)
        return irfft(rfft(u) * rfft(k), n=u.shape[-1])

    @staticmethod
    def backward(ctx, dy):
        u, k = ctx.saved_tensors
        n = u.shape[-1]
        dyf = rfft(dy)
        du = irfft(dyf * rfft(k).conj(), n=n)
        dk = irfft((dyf * rfft(u).conj()).sum(0), n=n)
        return du, dk
