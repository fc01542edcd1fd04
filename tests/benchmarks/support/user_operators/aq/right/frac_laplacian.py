import math
import torch


class FractionalLaplacian(torch.autograd.Function):

    @staticmethod
    def wavenumbers(u, dx):
        return 2 * math.pi * torch.fft.rfftfreq(u.shape[-1], d=dx, dtype=u.dtype, device=u.device)

    @staticmethod
    def forward(ctx, u, s, dx):
        k = FractionalLaplacian.wavenumbers(u, dx)
        ctx.save_for_backward(u, s)
        ctx.dx = dx
        return torch.fft.irfft(k ** (2 * s) * torch.fft.rfft(u), n=u.shape[-1])

    @staticmethod
    def backward(ctx, g):
        u, s = ctx.saved_tensors
        n = u.shape[-1]
        k = FractionalLaplacian.wavenumbers(u, ctx.dx)
        symbol = k ** (2 * s)
        gu = torch.fft.irfft(symbol * torch.fft.rfft(g), n=n)
        log_k = torch.where(k > 0, k, torch.ones_like(k)).log()
        du_ds = torch.fft.irfft(2 * log_k * symbol * torch.fft.rfft(u), n=n)
        return gu, (g * du_ds).sum(), None


def fractional_laplacian(u, s, dx=1.0):
    """(-Laplace)^s u on a periodic line; u (..., n) real, s 0-dim tensor > 0."""
    return FractionalLaplacian.apply(u, s, dx)
