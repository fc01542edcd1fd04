import torch
from torch import nn
from torch.fft import rfft, irfft


class CirculantMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.save_for_backward(x, c)
        return irfft(rfft(x) * rfft(c), n=c.shape[-1])

    @staticmethod
    def backward(ctx, g):
        x, c = ctx.saved_tensors
        n = c.shape[-1]
        G = rfft(g)
        gx = irfft(G * rfft(c).conj(), n=n)
        gc = irfft(G * rfft(x), n=n).reshape(-1, n).sum(0)
        return gx, gc


class CirculantLinear(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.c = nn.Parameter(torch.randn(n) / n ** 0.5)
        self.sign = nn.Buffer(torch.randint(0, 2, (n,)) * 2.0 - 1)

    def forward(self, x):
        return CirculantMul.apply(x * self.sign, self.c)
