from typing import Optional

import torch
from torch import Tensor, nn


def _bags(offsets: Tensor, n: int) -> Tensor:
    ends = torch.cat([offsets[1:], offsets.new_tensor([n])])
    return torch.repeat_interleave(torch.arange(len(offsets), device=offsets.device), ends - offsets)


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, ids, offsets, weights, mode, pad):
        ctx.save_for_backward(table, ids, offsets, weights)
        ctx.mode, ctx.pad = mode, pad
        bag = _bags(offsets, len(ids))
        live = (ids != pad).to(table.dtype)
        rows = table[ids] * live[:, None]
        if weights is not None:
            rows = rows * weights[:, None]
        out = table.new_zeros(len(offsets), table.shape[1]).index_add(0, bag, rows)
        if mode == "mean":
            count = table.new_zeros(len(offsets)).index_add(0, bag, live)
            out = out / count.clamp(min=1)[:, None]
        return out

    @staticmethod
    def backward(ctx, g):
        table, ids, offsets, weights = ctx.saved_tensors
        bag = _bags(offsets, len(ids))
        live = (ids != ctx.pad).to(table.dtype)
        if ctx.mode == "mean":
            count = table.new_zeros(len(offsets)).index_add(0, bag, live)
            g = g / count.clamp(min=1)[:, None]
        per = g[bag] * live[:, None]
        g_weights = None if weights is None else (per * table[ids]).sum(-1)
        if weights is not None:
            per = per * weights[:, None]
        return torch.zeros_like(table).index_add(0, ids, per), None, None, g_weights, None, None


class WeightedEmbeddingBag(nn.Module):
    """Bags of ids given flat with offsets; ``padding_idx`` counts neither in the sum nor in the mean."""

    def __init__(self, num: int, dim: int, mode: str = "mean", padding_idx: int = 0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(num, dim, generator=torch.Generator().manual_seed(1)))
        self.mode, self.padding_idx = mode, padding_idx

    def forward(self, ids: Tensor, offsets: Tensor, per_sample_weights: Optional[Tensor] = None) -> Tensor:
        return _Bag.apply(self.table, ids, offsets, per_sample_weights, self.mode, self.padding_idx)
