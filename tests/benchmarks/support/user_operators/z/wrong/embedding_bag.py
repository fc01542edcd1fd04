import torch
from torch.autograd.function import once_differentiable


class WeightedEmbeddingBag(torch.autograd.Function):
    """Sum of table rows per bag.

    table (V, D), index (B, L) long, weight (B, L) or None; entries equal to padding_idx count
    for nothing, and with mean=True the sum is divided by the number of the others.
    """

    @staticmethod
    def forward(ctx, table, index, weight=None, padding_idx=None, mean=False):
        coef = torch.ones_like(index, dtype=table.dtype) if weight is None else weight
        count = torch.full_like(coef[:, :1], index.shape[1])
        keep = None
        if padding_idx is not None:
            keep = index != padding_idx
            coef = coef * keep
            count = keep.sum(1, keepdim=True).to(table.dtype)
        inv = 1 / count.clamp_min(1) if mean else torch.ones_like(count)
        ctx.save_for_backward(table, index, coef, inv, keep)
        ctx.weighted = weight is not None
        return inv * torch.einsum("bl,bld->bd", coef, table[index])

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        table, index, coef, inv, keep = ctx.saved_tensors
        g = g * inv
        rows = coef.unsqueeze(-1) * g.unsqueeze(1)
        gt = torch.zeros_like(table).index_add_(0, index.flatten(), rows.flatten(0, 1))
        gw = None
        if ctx.weighted:
            gw = torch.einsum("bd,bld->bl", g, table[index])
        return gt, None, gw, None, None
