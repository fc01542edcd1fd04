import torch
from torch import nn


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, indices, offsets, psw, mode, padding_idx):
        ends = torch.cat([offsets[1:], offsets.new_tensor([indices.numel()])])
        bag = torch.repeat_interleave(torch.arange(len(offsets)), ends - offsets)
        keep = torch.ones_like(indices, dtype=torch.bool)
        if padding_idx is not None:
            keep = indices != padding_idx
        scale = torch.ones_like(indices, dtype=weight.dtype)
        if mode == "mean":
            count = torch.zeros_like(offsets).index_add_(0, bag, keep.long())
            scale = scale / count.clamp(min=1)[bag]
        rows = weight[indices] * (scale * keep)[:, None]
        if psw is not None:
            rows = rows * psw[:, None]
        ctx.save_for_backward(weight, indices, bag, keep, scale, psw)
        return weight.new_zeros(len(offsets), weight.shape[1]).index_add_(0, bag, rows)

    @staticmethod
    def backward(ctx, grad):
        weight, indices, bag, keep, scale, psw = ctx.saved_tensors
        g = grad[bag] * scale[:, None]
        gpsw = None
        if psw is not None:
            gpsw = (g * weight[indices]).sum(-1)
            g = g * psw[:, None]
        gw = torch.zeros_like(weight).index_add(0, indices, g)
        return gw, None, None, gpsw, None, None


class OffsetBag(nn.Module):
    """nn.EmbeddingBag, which also takes per sample weights in mode 'mean' (divided by the count).

    Indices equal to ``padding_idx`` count for nothing; an empty bag is 0.
    """

    def __init__(self, num, dim, mode="mean", padding_idx=None):
        super().__init__()
        if mode not in ("sum", "mean"):
            raise ValueError(f"unknown mode {mode!r}")
        self.mode, self.padding_idx = mode, padding_idx
        self.weight = nn.Parameter(torch.randn(num, dim))

    def forward(self, indices, offsets, per_sample_weights=None):
        return _Bag.apply(
            self.weight, indices, offsets, per_sample_weights, self.mode, self.padding_idx
        )
