import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _Heun(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, W, b, n, h):
        tape = []
        for _ in range(n):
            k1 = torch.tanh(z @ W + b)
            m = z + h * k1
            k2 = torch.tanh(m @ W + b)
            tape += [z, k1, m, k2]
            z = z + h / 2 * (k1 + k2)
        ctx.h = h
        ctx.save_for_backward(W, *tape)
        return z.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        W, *tape = ctx.saved_tensors
        h = ctx.h
        gW, gb = torch.zeros_like(W), W.new_zeros(W.size(1))
        while tape:
            z, k1, m, k2 = tape[-4:]
            del tape[-4:]
            a2 = h / 2 * g * (1 - k2 * k2)
            gm = a2 @ W.t()
            a1 = (h / 2 * g + h * gm) * (1 - k1 * k1)
            gW += z.t() @ a1 + m.t() @ a2
            gb += (a1 + a2).sum(0)
            g = g + gm + a1 @ W.t()
        return g, gW, gb, None, None


class HeunNet(nn.Module):
    def __init__(self, d, n=4, h=.25):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d, d) / d ** .5)
        self.b = nn.Parameter(torch.zeros(d))
        self.n, self.h = n, h

    def forward(self, z):
        return _Heun.apply(z, self.W, self.b, self.n, self.h)
