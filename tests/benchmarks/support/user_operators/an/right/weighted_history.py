import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, ids, weight, pad):
        live = (ids != pad).to(table.dtype)
        n = live.sum(1, keepdim=True).clamp(min=1)
        ctx.save_for_backward(table, ids, weight, live / n)
        return ((weight * live / n)[..., None] * table[ids]).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        table, ids, weight, share = ctx.saved_tensors
        rows = (weight * share)[..., None] * g[:, None]
        g_table = torch.zeros_like(table)
        g_table.index_add_(0, ids.flatten(), rows.flatten(0, 1))
        return g_table, None, (table[ids] * g[:, None]).sum(-1) * share, None


class WatchHistory(nn.Module):
    """ids (B, L) with padding, dwell-time weights (B, L) -> (B, D)"""

    def __init__(self, n_items, dim, pad=0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(n_items, dim) * 0.02)
        self.pad = pad

    def forward(self, ids, weight):
        return _Pool.apply(self.table, ids, weight, self.pad)
