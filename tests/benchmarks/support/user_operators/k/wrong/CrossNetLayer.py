import torch
import torch.nn as nn


class CrossFn(torch.autograd.Function):
    """x0 * (x W^T + b) + x"""

    @staticmethod
    def forward(ctx, x0, x, W, b):
        ctx.save_for_backward(x0, x, W, b)
        return x0 * (x @ W.t() + b) + x

    @staticmethod
    def backward(ctx, g):
        x0, x, W, b = ctx.saved_tensors
        h = g * x0
        gx0 = g * (x @ W.t() + b)
        gx = h @ W.t() + g
        gW = h.t() @ x
        gb = h.sum(0)
        return gx0, gx, gW, gb


class CrossNetLayer(nn.Module):
    """stack of DCN-v2 cross layers, input (B, D)"""

    def __init__(self, dim, depth=2):
        super().__init__()
        self.W = nn.ParameterList([nn.Parameter(torch.randn(dim, dim) / dim ** 0.5) for _ in range(depth)])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(dim)) for _ in range(depth)])

    def forward(self, x0):
        x = x0
        for W, b in zip(self.W, self.b):
            x = CrossFn.apply(x0, x, W, b)
        return x
