import torch
from torch.autograd.function import once_differentiable


class WeightedEmbeddingBag(torch.autograd.Function):
    """Pools rows of ``table`` per bag.

    Args:
        table: (V, D) embedding matrix.
        ids: (N,) int64 row numbers, all bags one after another.
        offsets: (B,) int64, position in ``ids`` where each bag starts.
        weights: (N,) weight of every id, or None for ones.
        mode: "sum" or "mean"; the mean divides by the number of ids kept in a bag.
        padding_idx: ids equal to this are left out of the bag.

    Returns:
        (B, D); an empty bag gives zeros.
    """

    @staticmethod
    def forward(ctx, table, ids, offsets, weights=None, mode="sum", padding_idx=None):
        if mode not in ("sum", "mean"):
            raise ValueError(f"unknown mode {mode!r}")
        if ids.dim() != 1 or offsets.dim() != 1:
            raise ValueError("ids and offsets must be one-dimensional")
        n, nbag = ids.numel(), offsets.numel()
        pos = torch.arange(n, device=ids.device)
        bag = torch.searchsorted(offsets.contiguous(), pos, right=True) - 1
        keep = torch.ones(n, dtype=table.dtype, device=table.device)
        if padding_idx is not None:
            keep = (ids != padding_idx).to(table.dtype)
        w = keep if weights is None else weights * keep
        size = table.new_zeros(nbag).index_add_(0, bag, keep).clamp_(min=1)
        scale = 1.0 / size if mode == "mean" else torch.ones_like(size)
        out = table.new_zeros(nbag, table.size(1))
        out.index_add_(0, bag, table[ids] * w.unsqueeze(1))
        ctx.save_for_backward(table, ids, bag, w, keep, scale)
        ctx.weighted = weights is not None
        return out * scale.unsqueeze(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        table, ids, bag, w, keep, scale = ctx.saved_tensors
        g = (grad_out * scale.unsqueeze(1))[bag]
        grad_table = grad_weights = None
        if ctx.needs_input_grad[0]:
            grad_table = torch.zeros_like(table)
            grad_table.index_add_(0, ids, g * w.unsqueeze(1))
        if ctx.weighted and ctx.needs_input_grad[3]:
            grad_weights = (g * table[ids]).sum(1) * keep
        return grad_table, None, None, grad_weights, None, None
