import torch
from torch import nn


class _WeightNorm(torch.autograd.Function):
    """w = gain * v / |v|, the norm over all but the first axis"""

    @staticmethod
    def forward(ctx, v, gain):
        norm = v.flatten(1).norm(dim=1)
        ctx.save_for_backward(v, gain)
        return v * (gain / norm).reshape(-1, *[1] * (v.dim() - 1))

    @staticmethod
    def backward(ctx, gw):
        v, gain = ctx.saved_tensors
        flat, g = v.flatten(1), gw.flatten(1)
        norm = flat.norm(dim=1, keepdim=True)
        unit = flat / norm
        ggain = (g * unit).sum(1)
        gv = gain.unsqueeze(1) / norm * g
        return gv.reshape(v.shape), ggain


class WeightNormLinear(nn.Module):
    def __init__(self, n_in, n_out, bias=True):
        super().__init__()
        self.v = nn.Parameter(torch.randn(n_out, n_in))
        self.gain = nn.Parameter(torch.rand(n_out) + 0.5)
        self.bias = nn.Parameter(torch.zeros(n_out)) if bias else None

    def forward(self, x):
        return nn.functional.linear(x, _WeightNorm.apply(self.v, self.gain), self.bias)
