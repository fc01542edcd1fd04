import torch


class FFTLongConv(torch.autograd.Function):
    """Causal long convolution, u (B, D, L) with filters k (D, L), plus a skip weighted by d (D,)."""

    @staticmethod
    def forward(ctx, u, k, d):
        L = u.shape[-1]
        if k.shape != u.shape[1:]:
            raise ValueError("one filter of the sequence's length per channel")
        kf = torch.fft.rfft(k, n=2 * L)
        uf = torch.fft.rfft(u, n=2 * L)
        ctx.save_for_backward(u, k, d)
        return torch.fft.irfft(uf * kf, n=2 * L)[..., :L] + u * d[:, None]

    @staticmethod
    def backward(ctx, dout):
        u, k, d = ctx.saved_tensors
        L = u.shape[-1]
        kf = torch.fft.rfft(k, n=2 * L)
        uf = torch.fft.rfft(u, n=2 * L)
        gf = torch.fft.rfft(dout, n=2 * L)
        du = torch.fft.irfft(gf * kf.conj(), n=2 * L)[..., :L] + dout * d[:, None]
        dk = torch.fft.irfft((gf * uf.conj()).sum(0), n=2 * L)[..., :L]
        return du, dk, (dout * u).sum((0, 2))
