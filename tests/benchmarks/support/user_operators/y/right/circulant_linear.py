import torch
import torch.nn as nn
from torch.fft import irfft, rfft


class _CirculantMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.save_for_backward(x, c)
        return irfft(rfft(x) * rfft(c), n=x.shape[-1])

    @staticmethod
    def backward(ctx, g):
        x, c = ctx.saved_tensors
        n = x.shape[-1]
        gf = rfft(g)
        dx = irfft(gf * rfft(c).conj(), n=n)
        dc = irfft(gf * rfft(x).conj(), n=n).reshape(-1, n).sum(0)
        return dx, dc


class CirculantLinear(nn.Module):
    """A square linear layer with a circulant matrix, signs flipped at random before it."""

    def __init__(self, dim, bias=True):
        super().__init__()
        self.c = nn.Parameter(torch.randn(dim) / dim**0.5)
        self.bias = nn.Parameter(torch.zeros(dim)) if bias else None
        g = torch.Generator().manual_seed(0)
        self.register_buffer("sign", torch.randint(0, 2, (dim,), generator=g) * 2.0 - 1)

    def forward(self, x):
        y = _CirculantMatmul.apply(x * self.sign, self.c)
        return y if self.bias is None else y + self.bias
