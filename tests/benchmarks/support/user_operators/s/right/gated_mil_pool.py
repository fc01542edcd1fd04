import torch
import torch.nn as nn


class _GatedPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, V, U, w):
        t, s = torch.tanh(h @ V), torch.sigmoid(h @ U)
        a = torch.softmax((t * s) @ w, 0)
        ctx.save_for_backward(h, V, U, w)
        return a @ h, a

    @staticmethod
    def backward(ctx, gz, ga):
        h, V, U, w = ctx.saved_tensors
        t, s = torch.tanh(h @ V), torch.sigmoid(h @ U)
        a = torch.softmax((t * s) @ w, 0)
        ga = ga + h @ gz
        ge = a * (ga - (a * ga).sum())
        gts = torch.outer(ge, w)
        gv = gts * s * (1 - t * t)
        gu = gts * t * s * (1 - s)
        gh = torch.outer(a, gz) + gv @ V.t() + gu @ U.t()
        return gh, h.t() @ gv, h.t() @ gu, (t * s).t() @ ge


class GatedAttentionPool(nn.Module):
    """Attention based MIL pooling (Ilse et al. 2018) of one bag: (N, dim) -> (dim,), weights (N,)."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.V = nn.Parameter(torch.randn(dim, hidden) / dim**0.5)
        self.U = nn.Parameter(torch.randn(dim, hidden) / dim**0.5)
        self.w = nn.Parameter(torch.randn(hidden) / hidden**0.5)

    def forward(self, bag):
        return _GatedPool.apply(bag, self.V, self.U, self.w)
