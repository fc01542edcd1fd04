import torch


class WeightedBag(torch.autograd.Function):
    """Embedding bags with weights.

    table (V, D); ids (L,) int64; offsets (B,) first position of every bag, offsets[0] == 0;
    weights (L,) or None; mode "sum" or "mean". Rows equal to padding_idx do not count.
    """

    @staticmethod
    def forward(ctx, table, ids, offsets, weights=None, padding_idx=None, mode="sum"):
        bag = torch.bucketize(torch.arange(len(ids), device=ids.device), offsets, right=True) - 1
        keep = torch.ones_like(ids, dtype=table.dtype)
        if padding_idx is not None:
            keep = (ids != padding_idx).to(table.dtype)
        scale = keep
        if mode == "mean":
            count = keep.new_zeros(len(offsets)).index_add_(0, bag, keep).clamp(min=1)
            scale = keep / count[bag]
        w = scale if weights is None else scale * weights
        ctx.save_for_backward(table, ids, bag, weights, scale)
        return table.new_zeros(len(offsets), table.shape[1]).index_add_(0, bag, w[:, None] * table[ids])

    @staticmethod
    def backward(ctx, grad):
        table, ids, bag, weights, scale = ctx.saved_tensors
        g = grad[bag] * scale[:, None]
        gw = None
        gt = torch.zeros(table.shape, device=table.device)
        if weights is None:
            gt = gt.index_add(0, ids, g)
        else:
            gt = gt.index_add(0, ids, g * weights[:, None])
            gw = (g * table[ids]).sum(1)
        return gt, None, None, gw, None, None
