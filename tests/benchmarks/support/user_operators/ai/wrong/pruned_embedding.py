"""Embedding with learnable pruning thresholds (PEP)."""
import torch
from torch import nn


class _SoftPrune(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, s):
        ctx.save_for_backward(w, s)
        return w.sign() * torch.relu(w.abs() - torch.sigmoid(s))

    @staticmethod
    def backward(ctx, g):
        w, s = ctx.saved_tensors
        t = torch.sigmoid(s)
        alive = (w.abs() > t).to(g.dtype)
        gw = g * alive
        gs = -g * alive * w.sign()
        return gw, _reduce(gs, s.shape)


def _reduce(g, shape):
    lead = g.dim() - len(shape)
    if lead:
        g = g.sum(list(range(lead)))
    ones = [i for i, n in enumerate(shape) if n == 1 and g.size(i) != 1]
    return g.sum(ones, keepdim=True) if ones else g


class PrunedEmbedding(nn.Module):
    """threshold: "global" (one), "dimension" (per column), "feature" (per row)."""

    SHAPES = {"global": lambda v, d: (1,), "dimension": lambda v, d: (d,), "feature": lambda v, d: (v, 1)}

    def __init__(self, num, dim, threshold="dimension", init=-3.0, padding_idx=None):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num, dim))
        self.s = nn.Parameter(torch.full(self.SHAPES[threshold](num, dim), init))
        self.padding_idx = padding_idx
        nn.init.xavier_uniform_(self.weight)

    def forward(self, ids):
        out = nn.functional.embedding(ids, _SoftPrune.apply(self.weight, self.s))
        if self.padding_idx is not None:
            out = out.masked_fill((ids == self.padding_idx).unsqueeze(-1), 0)
        return out
