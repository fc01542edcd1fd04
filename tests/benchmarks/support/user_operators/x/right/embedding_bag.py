import torch
from torch.autograd.function import once_differentiable


class EmbeddingBag(torch.autograd.Function):
    """Bags of rows.

    weight (V, D); indices (L,); offsets (B,) where each bag starts; mode "sum" or "mean";
    per_sample_weights (L,) only with "sum".
    """

    @staticmethod
    def forward(ctx, weight, indices, offsets, mode="mean", per_sample_weights=None):
        bag = torch.zeros_like(indices)
        bag[offsets[1:]] = 1
        bag = bag.cumsum(0)
        rows = weight[indices]
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[:, None]
        out = weight.new_zeros(len(offsets), weight.size(1)).index_add(0, bag, rows)
        count = torch.bincount(bag, minlength=len(offsets)).to(weight.dtype)
        if mode == "mean":
            out = out / count[:, None]
        ctx.save_for_backward(weight, indices, bag, count, per_sample_weights)
        ctx.mode = mode
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        weight, indices, bag, count, psw = ctx.saved_tensors
        if ctx.mode == "mean":
            g = g / count[:, None]
        g = g[bag]
        gp = None
        if psw is not None:
            gp = (g * weight[indices]).sum(1)
            g = g * psw[:, None]
        gw = torch.zeros_like(weight)
        gw.index_put_((indices,), g, accumulate=True)
        return gw, None, None, None, gp
