import math

import torch
from torch import nn

class _Encode(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, B):
        phase = 2 * math.pi * x @ B
        ctx.save_for_backward(x, B)
        return torch.cat([phase.sin(), phase.cos()], -1)

    @staticmethod
    def backward(ctx, grad):
        x, B = ctx.saved_tensors
        gs, gc = grad.chunk(2, -1)
        phase = 2 * math.pi * x @ B
        gp = 2 * math.pi * (gs * phase.cos() - gc * phase.sin())
        return gp @ B.t(), x.flatten(0, -2).t() @ gp.flatten(0, -2)


class FourierFeatures(nn.Module):
    """Coordinates (..., N, dim) -> (..., N, 2 * features), frequencies are learned."""

    def __init__(self, dim: int, features: int, sigma: float = 1.0):
        super().__init__()
        self.B = nn.Parameter(torch.randn(dim, features) * sigma)

    def forward(self, coords):
        return _Encode.apply(coords, self.B)
