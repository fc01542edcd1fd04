import torch
import torch.nn as nn


class CompactBilinear(torch.autograd.Function):
    """Circular convolution of the count sketches of x (B, dx) and y (B, dy), length m."""

    @staticmethod
    def sketch(v, h, s, m):
        return torch.zeros(v.shape[0], m, dtype=v.dtype, device=v.device).index_add(1, h, v * s)

    @staticmethod
    def forward(ctx, x, y, hx, sx, hy, sy, m):
        ctx.save_for_backward(x, y, hx, sx, hy, sy)
        ctx.m = m
        a, b = CompactBilinear.sketch(x, hx, sx, m), CompactBilinear.sketch(y, hy, sy, m)
        return torch.fft.irfft(torch.fft.rfft(a) * torch.fft.rfft(b), n=m)

    @staticmethod
    def backward(ctx, grad):
        x, y, hx, sx, hy, sy = ctx.saved_tensors
        m = ctx.m
        A = torch.fft.rfft(CompactBilinear.sketch(x, hx, sx, m))
        B = torch.fft.rfft(CompactBilinear.sketch(y, hy, sy, m))
        G = torch.fft.rfft(grad)
        ga = torch.fft.irfft(G * B.conj(), n=m)
        gb = torch.fft.irfft(G * A, n=m)
        return ga[:, hx] * sx, gb[:, hy] * sy, None, None, None, None, None


class MCBPool(nn.Module):
    def __init__(self, dx, dy, m, seed=0):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.m = m
        self.register_buffer("hx", torch.randint(m, (dx,), generator=g))
        self.register_buffer("hy", torch.randint(m, (dy,), generator=g))
        self.register_buffer("sx", torch.randint(2, (dx,), generator=g) * 2.0 - 1)
        self.register_buffer("sy", torch.randint(2, (dy,), generator=g) * 2.0 - 1)
        self.gain = nn.Parameter(torch.ones(m))

    def forward(self, x, y):
        return self.gain * CompactBilinear.apply(x, y, self.hx, self.sx, self.hy, self.sy, self.m)
