import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class ButterflyFn(torch.autograd.Function):
    # x (B, n), w (log2 n, n/2, 2, 2)

    @staticmethod
    def forward(ctx, x, w):
        B, n = x.shape
        acts = x.new_empty(w.shape[0], B, n)
        for level in range(w.shape[0]):
            s = 2 ** level
            acts[level] = x
            wl = w[level].view(n // (2 * s), s, 2, 2)
            x = torch.einsum("gsij,bgjs->bgis", wl, x.reshape(B, -1, 2, s)).reshape(B, n)
        ctx.acts = acts
        ctx.save_for_backward(w)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, = ctx.saved_tensors
        B, n = g.shape
        gw = torch.zeros_like(w)
        for level in reversed(range(w.shape[0])):
            s = 2 ** level
            xl = ctx.acts[level].view(B, -1, 2, s)
            gl = g.reshape(B, -1, 2, s)
            gw[level] = torch.einsum("bgis,bgjs->gsij", gl, xl).reshape(n // 2, 2, 2)
            wl = w[level].view(n // (2 * s), s, 2, 2)
            g = torch.einsum("gsij,bgis->bgjs", wl, gl).reshape(B, n)
        return g, gw


class ButterflyLinear(nn.Module):
    """Structured n x n map with 2 n log2(n) weights; n a power of two."""

    def __init__(self, n):
        super().__init__()
        levels = n.bit_length() - 1
        assert 2 ** levels == n
        self.weight = nn.Parameter(torch.randn(levels, n // 2, 2, 2) / 2 ** 0.5)

    def forward(self, x):
        return ButterflyFn.apply(x, self.weight)
