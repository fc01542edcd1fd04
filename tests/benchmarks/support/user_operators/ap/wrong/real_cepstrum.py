import torch


class RealCepstrum(torch.autograd.Function):
    """irfft(log |rfft(x)|) along the last dimension; the spectrum must not vanish."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.fft.irfft(torch.fft.rfft(x).abs().log(), n=x.shape[-1])

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        X = torch.fft.rfft(x)
        G = torch.fft.rfft(g).real
        return torch.fft.irfft(G / X, n=x.shape[-1])
