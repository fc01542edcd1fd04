import torch
from torch.autograd.function import once_differentiable


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, idx, bag, n, psw, mean, padding_idx):
        use = torch.ones_like(weight[:1, 0]).expand(len(idx))
        if padding_idx is not None:
            use = (idx != padding_idx).to(weight.dtype)
        coef = use if psw is None else use * psw
        if mean:
            cnt = weight.new_zeros(n).index_add_(0, bag, use).clamp(min=1)
            coef = coef / cnt[bag]
        ctx.save_for_backward(weight, idx, bag, coef, use)
        ctx.weighted = psw is not None
        return weight.new_zeros(n, weight.shape[1]).index_add_(0, bag, coef[:, None] * weight[idx])

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        weight, idx, bag, coef, use = ctx.saved_tensors
        ge = g[bag]
        gw = torch.zeros_like(weight).index_add_(0, idx, coef[:, None] * ge)
        gp = (ge * weight[idx]).sum(1) if ctx.weighted else None
        return gw, None, None, None, gp, None, None


def weighted_bag(weight, idx, offsets, per_sample=None, mode="sum", padding_idx=None):
    """weight (V, D), idx (N,), offsets (B,) start of each bag, per_sample (N,) only for mode "sum" -> (B, D)"""
    if mode not in ("sum", "mean"):
        raise ValueError(mode)
    if per_sample is not None and mode != "sum":
        raise ValueError("per_sample needs mode='sum'")
    bag = torch.bucketize(torch.arange(len(idx), device=idx.device), offsets, right=True) - 1
    return _Bag.apply(weight, idx, bag, len(offsets), per_sample, mode == "mean", padding_idx)
