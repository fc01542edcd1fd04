import math
import torch


def _twiddle(n, dtype, device):
    k = torch.arange(n, dtype=dtype, device=device)
    return torch.polar(torch.ones_like(k), -math.pi * k / (2 * n))


class DCT2(torch.autograd.Function):
    # X_k = sum_n x_n cos(pi (2n + 1) k / 2N)
    @staticmethod
    def forward(ctx, x, ortho):
        n = x.shape[-1]
        ctx.ortho = ortho
        v = torch.cat([x[..., ::2], x[..., 1::2].flip(-1)], -1)
        X = (torch.fft.fft(v) * _twiddle(n, x.dtype, x.device)).real
        if ortho:
            X = X * math.sqrt(2 / n)
            X[..., 0] /= math.sqrt(2)
        return X

    @staticmethod
    def backward(ctx, g):
        n = g.shape[-1]
        if ctx.ortho:
            w = torch.full((n,), math.sqrt(2 / n), dtype=g.dtype, device=g.device)
            w[0] *= math.sqrt(2)
            g = g * w
        v = torch.fft.fft(g * _twiddle(n, g.dtype, g.device)).real
        return torch.stack([v[..., i // 2] if i % 2 == 0 else v[..., n - 1 - i // 2] for i in range(n)], -1), None
