import torch
import torch.nn as nn
from torch.autograd import Function


class FMFunction(Function):
    @staticmethod
    def forward(ctx, w, v, idx, val):
        ctx.save_for_backward(w, v, idx, val)
        e = v[idx] * val.unsqueeze(-1)
        pair = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(-1)
        return (w[idx] * val).sum(1) + pair

    @staticmethod
    def backward(ctx, g):
        w, v, idx, val = ctx.saved_tensors
        rows = v[idx]
        e = rows * val.unsqueeze(-1)
        rest = e.sum(1, keepdim=True) - e
        de = g[:, None, None] * rest
        gw = torch.zeros_like(w).index_put((idx,), g.unsqueeze(1) * val, accumulate=True)
        gv = torch.zeros_like(v).index_put((idx,), de * val.unsqueeze(-1), accumulate=True)
        gval = g.unsqueeze(1) * w[idx] + (de * rows).sum(-1)
        return gw, gv, None, None


class FactorizationMachine(nn.Module):
    """CTR model: idx (B, F) feature ids, val (B, F) feature values (ones when left out)."""

    def __init__(self, n_features, k=4):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.linear = nn.Parameter(torch.zeros(n_features))
        self.factors = nn.Parameter(torch.randn(n_features, k) * 0.01)

    def forward(self, idx, val=None):
        if val is None:
            val = torch.ones_like(idx, dtype=self.factors.dtype)
        return self.bias + FMFunction.apply(self.linear, self.factors, idx, val)
