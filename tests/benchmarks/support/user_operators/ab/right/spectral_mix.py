import torch
import torch.nn as nn


def _adjoint_irfft(g, n):
    """Adjoint of torch.fft.irfft(., n) for real inner products."""
    G = torch.fft.rfft(g, n=n, norm="forward")
    scale = torch.full((n // 2 + 1,), 2.0, dtype=g.dtype, device=g.device)
    scale[0] = 1.0
    if n % 2 == 0:
        scale[-1] = 1.0
    return G * scale


def _adjoint_rfft(G, n):
    """Adjoint of torch.fft.rfft of n real points."""
    full = torch.zeros(*G.shape[:-1], n - G.shape[-1], dtype=G.dtype, device=G.device)
    return torch.fft.ifft(torch.cat([G, full], -1), norm="forward").real


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        n, modes = x.shape[-1], weight.shape[-1]
        X = torch.fft.rfft(x)
        Y = torch.zeros(x.shape[0], weight.shape[1], X.shape[-1], dtype=X.dtype, device=x.device)
        Y[..., :modes] = torch.einsum("bik,iok->bok", X[..., :modes], weight)
        ctx.save_for_backward(x, weight)
        return torch.fft.irfft(Y, n=n)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        n, modes = x.shape[-1], weight.shape[-1]
        G = _adjoint_irfft(g, n)[..., :modes]
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = _adjoint_rfft(torch.einsum("bok,iok->bik", G, weight.conj()), n)
        if ctx.needs_input_grad[1]:
            gw = torch.einsum("bik,bok->iok", torch.fft.rfft(x)[..., :modes].conj(), G)
        return gx, gw


class SpectralMix1d(nn.Module):
    """Fourier layer: the lowest ``modes`` frequencies mixed over channels by complex weights."""

    def __init__(self, cin, cout, modes):
        super().__init__()
        g = torch.Generator().manual_seed(3)
        self.weight = nn.Parameter(torch.randn(cin, cout, modes, 2, generator=g) / cin)

    def forward(self, x):
        assert x.shape[-1] // 2 + 1 >= self.weight.shape[2]
        return _Mix.apply(x, torch.view_as_complex(self.weight))
