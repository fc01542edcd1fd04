import math

import torch
from torch import nn


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, ids, padding_idx):
        ctx.save_for_backward(ids)
        ctx.vocab, ctx.pad = weight.shape, padding_idx
        keep = (ids != padding_idx).unsqueeze(-1)
        return weight[ids] * math.sqrt(weight.shape[1]) * keep

    @staticmethod
    def backward(ctx, g):
        (ids,) = ctx.saved_tensors
        g = g * math.sqrt(ctx.vocab[1])
        g = g.masked_fill((ids == ctx.pad).unsqueeze(-1), 0)
        out = g.new_zeros(ctx.vocab)
        return out.index_add(0, ids.reshape(-1), g.reshape(-1, ctx.vocab[1])), None, None


class ScaledEmbedding(nn.Module):
    """Token embedding times sqrt(d); padding tokens give zeros."""

    def __init__(self, vocab, dim, padding_idx=0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab, dim))
        self.padding_idx = padding_idx

    def forward(self, ids):
        return _Lookup.apply(self.weight, ids, self.padding_idx)
