import torch
from torch.autograd.function import once_differentiable


class WeightedEmbeddingBag(torch.autograd.Function):
    """EmbeddingBag over 1-d ids and offsets, with weights per sample in both modes.

    mode "mean" divides by the number of ids of a bag that are not padding.
    """

    @staticmethod
    def forward(ctx, table, ids, offsets, sample_weight=None, mode="sum", padding_idx=None):
        ends = torch.cat([offsets[1:], offsets.new_tensor([ids.numel()])])
        bag = torch.repeat_interleave(torch.arange(offsets.numel(), device=ids.device), ends - offsets)
        w = table.new_ones(ids.numel()) if sample_weight is None else sample_weight
        keep = torch.ones_like(ids, dtype=torch.bool) if padding_idx is None else ids != padding_idx
        coef = keep.to(table.dtype)
        if mode == "mean":
            count = table.new_zeros(offsets.numel()).index_add_(0, bag, coef).clamp_(min=1)
            coef = coef / count[bag]
        out = table.new_zeros(offsets.numel(), table.shape[1])
        out.index_add_(0, bag, table[ids] * (w * coef)[:, None])
        ctx.save_for_backward(table, ids, bag, w, coef)
        ctx.weighted = sample_weight is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        table, ids, bag, w, coef = ctx.saved_tensors
        g = grad[bag] * coef[:, None]
        d_table = torch.zeros_like(table).index_add_(0, ids, g * w[:, None])
        d_w = (g * table[ids]).sum(-1) if ctx.weighted else None
        return d_table, None, None, d_w, None, None
