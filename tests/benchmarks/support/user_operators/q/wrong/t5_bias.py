import math

import torch
import torch.nn as nn


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, table, bucket):
        ctx.save_for_backward(bucket)
        ctx.buckets = table.shape[0]
        return scores + table[bucket].permute(2, 0, 1)

    @staticmethod
    def backward(ctx, g):
        (bucket,) = ctx.saved_tensors
        per_pair = g.sum(0).permute(1, 2, 0)
        g_table = g.new_zeros(ctx.buckets, g.shape[1])
        g_table = g_table.index_copy(0, bucket.flatten(), per_pair.flatten(0, 1))
        return g, g_table, None


class RelativeBias(nn.Module):
    """T5's bidirectional relative position bias, added to scores (B, H, Q, K)."""

    def __init__(self, heads: int, buckets: int = 8, max_distance: int = 16):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(buckets, heads))
        self.buckets, self.max_distance = buckets, max_distance

    def bucket(self, q: int, k: int, device=None) -> torch.Tensor:
        rel = torch.arange(k, device=device)[None] - torch.arange(q, device=device)[:, None]
        half = self.buckets // 2
        side = (rel > 0).long() * half
        rel = rel.abs()
        exact = half // 2
        far = exact + (torch.log(rel.clamp(min=1) / exact) / math.log(self.max_distance / exact) * (half - exact)).long()
        return side + torch.where(rel < exact, rel, far.clamp(max=half - 1))

    def forward(self, scores):
        if scores.shape[1] != self.table.shape[1] or scores.is_complex():
            raise ValueError("real scores with one plane a head")
        return _Lookup.apply(scores, self.table, self.bucket(*scores.shape[-2:], device=scores.device))
