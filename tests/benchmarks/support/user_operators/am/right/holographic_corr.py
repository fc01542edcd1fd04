import torch
from torch.fft import irfft, rfft


class CircularCorrelation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return irfft(rfft(a).conj() * rfft(b), n=a.shape[-1])

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        n = a.shape[-1]
        G = rfft(grad)
        ga = gb = None
        if ctx.needs_input_grad[0]:
            ga = irfft(G.conj() * rfft(b), n=n).sum_to_size(a.shape)
        if ctx.needs_input_grad[1]:
            gb = irfft(G * rfft(a), n=n).sum_to_size(b.shape)
        return ga, gb


def circular_correlation(a, b):
    """HolE composition, c[k] = sum_i a[i] b[i + k]; (..., D) with broadcasting of the leading axes"""
    return CircularCorrelation.apply(a, b)
