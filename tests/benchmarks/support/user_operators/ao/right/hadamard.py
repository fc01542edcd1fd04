import math
import torch
from torch import nn


def _butterfly_(y):
    """unnormalised Walsh-Hadamard transform of the last axis, in place"""
    n, h = y.shape[-1], 1
    while h < n:
        v = y.reshape(-1, n // (2 * h), 2, h)
        a, b = v[:, :, 0].clone(), v[:, :, 1].clone()
        v[:, :, 0] = a + b
        v[:, :, 1] = a - b
        h *= 2
    return y


class FastHadamard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone(memory_format=torch.contiguous_format)
        return _butterfly_(y) / math.sqrt(x.shape[-1])

    @staticmethod
    def backward(ctx, g):
        # symmetric and orthogonal
        y = g.clone(memory_format=torch.contiguous_format)
        return _butterfly_(y) / math.sqrt(g.shape[-1])


class FastfoodRotation(nn.Module):
    """x -> H d2 H d1 x over the last axis, a power of two"""

    def __init__(self, n):
        super().__init__()
        if n & (n - 1):
            raise ValueError(f"{n} is not a power of two")
        self.d1 = nn.Parameter(torch.ones(n))
        self.d2 = nn.Parameter(torch.ones(n))

    def forward(self, x):
        x = FastHadamard.apply(x * self.d1)
        return FastHadamard.apply(x * self.d2)
