import torch


class FFTLongConv(torch.autograd.Function):
    """Causal convolution with a filter as long as the sequence (Hyena, S4).

    u: (B, D, L), k: (D, L), skip: (D,) or None
    """

    @staticmethod
    def forward(ctx, u, k, skip=None):
        n = 2 * u.shape[-1]
        y = torch.fft.irfft(torch.fft.rfft(u, n=n) * torch.fft.rfft(k, n=n), n=n)[..., :u.shape[-1]]
        ctx.save_for_backward(u, k, skip)
        return y if skip is None else y + u * skip[:, None]

    @staticmethod
    def backward(ctx, dy):
        u, k, skip = ctx.saved_tensors
        L = u.shape[-1]
        n = 2 * L
        dyf = torch.fft.rfft(dy, n=n)
        du = torch.fft.irfft(dyf * torch.fft.rfft(k, n=n).conj(), n=n)[..., :L]
        dk = torch.fft.irfft((dyf * torch.fft.rfft(u, n=n).conj()).sum(0), n=n)[..., :L]
        dskip = None
        if skip is not None:
            du = du + dy * skip[:, None]
            dskip = (dy * u).sum((0, 2))
        return du, dk, dskip
