import torch
from torch import nn


def _ring_sum(v, ring, n):
    out = torch.zeros(n + 1, dtype=v.dtype, device=v.device)
    return out.index_add(0, ring.reshape(-1), v.reshape(-1))[:n]


class _FRC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, ring, n, eps):
        ctx.save_for_backward(a, b, ring)
        ctx.n, ctx.eps = n, eps
        A, B = torch.fft.fft2(a), torch.fft.fft2(b)
        num = _ring_sum((A * B.conj()).real, ring, n)
        ea = _ring_sum(A.abs().square(), ring, n)
        eb = _ring_sum(B.abs().square(), ring, n)
        return num / torch.sqrt(ea * eb + eps)

    @staticmethod
    def backward(ctx, g):
        a, b, ring = ctx.saved_tensors
        n = ctx.n
        A, B = torch.fft.fft2(a), torch.fft.fft2(b)
        num = _ring_sum((A * B.conj()).real, ring, n)
        ea = _ring_sum(A.real ** 2 + A.imag ** 2, ring, n)
        eb = _ring_sum(B.real ** 2 + B.imag ** 2, ring, n)
        q = ea * eb + ctx.eps
        pad = g.new_zeros(1)
        gnum = torch.cat([g / q.sqrt(), pad])[ring]
        gq = -0.5 * g * num / q ** 1.5
        ga = torch.cat([gq * eb, pad])[ring]
        gb = torch.cat([gq * ea, pad])[ring]
        GA = gnum * B + 2 * ga * A
        GB = gnum * A + 2 * gb * B
        # adjoint of the unnormalised fft
        return torch.fft.ifft2(GA, norm="forward").real, torch.fft.ifft2(GB, norm="forward").real, None, None, None


class FourierRingCorrelation(nn.Module):
    """FRC curve of two images (H, W) -> (n_rings,), corners outside the last ring are left out."""

    def __init__(self, h, w, n_rings, eps=1e-12):
        super().__init__()
        fy, fx = torch.fft.fftfreq(h)[:, None], torch.fft.fftfreq(w)[None]
        ring = ((fy ** 2 + fx ** 2).sqrt() * 2 * n_rings).long().clamp(max=n_rings)
        self.register_buffer("ring", ring)
        self.n_rings, self.eps = n_rings, eps

    def forward(self, a, b):
        return _FRC.apply(a, b, self.ring, self.n_rings, self.eps)
