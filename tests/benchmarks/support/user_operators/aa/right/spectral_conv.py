import torch
from torch import nn


class _SpectralMix(torch.autograd.Function):
    """Mix the lowest modes of a real signal: irfft(W . rfft(x)).

    x (B, I, N) real, W (I, O, M) complex, M <= N//2 + 1
    """

    @staticmethod
    def multiplicity(n, m, like):
        # how often a bin of the half spectrum stands in the full one
        w = torch.full((n // 2 + 1,), 2.0, dtype=like.dtype, device=like.device)
        w[0] = 1
        if n % 2 == 0:
            w[-1] = 1
        return w[:m]

    @staticmethod
    def forward(ctx, x, W):
        n, m = x.shape[-1], W.shape[-1]
        ctx.save_for_backward(x, W)
        X = torch.fft.rfft(x)[..., :m]
        return torch.fft.irfft(torch.einsum("bim,iom->bom", X, W), n=n)

    @staticmethod
    def backward(ctx, g):
        x, W = ctx.saved_tensors
        n, m = x.shape[-1], W.shape[-1]
        w = _SpectralMix.multiplicity(n, m, x)
        real_bins = (w == 1).expand(g.shape[0], g.shape[1], m)
        G = torch.fft.rfft(g)[..., :m] * w / n
        G = torch.where(real_bins, G.real.to(G.dtype), G)
        gx = gW = None
        if ctx.needs_input_grad[0]:
            S = torch.einsum("bom,iom->bim", G, W.conj()) / w
            gx = torch.fft.irfft(S, n=n) * n
        if ctx.needs_input_grad[1]:
            X = torch.fft.rfft(x)[..., :m]
            gW = torch.einsum("bim,bom->iom", X.conj(), G)
        return gx, gW


class SpectralConv1d(nn.Module):
    """Fourier layer with ``modes`` kept frequencies; weights are stored as pairs of reals."""

    def __init__(self, cin, cout, modes, seed=0):
        super().__init__()
        gen = torch.Generator().manual_seed(seed)
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(cin, cout, modes, 2, generator=gen) / (cin * cout))

    def forward(self, x):
        m = min(self.modes, x.shape[-1] // 2 + 1)
        return _SpectralMix.apply(x, torch.view_as_complex(self.weight[:, :, :m].contiguous()))
