from typing import Optional

import torch
from torch.autograd.function import once_differentiable


class BagPool(torch.autograd.Function):
    """Pooled embedding lookup.

    Args:
        weight: table of shape ``(V, D)``.
        indices: flat row ids ``(N,)``.
        offsets: start of each bag ``(B,)``.
        per_sample_weights: optional ``(N,)``.
        mode: ``"sum"``, ``"mean"`` or ``"sqrtn"``; the latter two divide by the number of
            valid entries of the bag or its root.
        padding_idx: rows with this id are skipped.
    """

    @staticmethod
    def forward(ctx, weight, indices, offsets, per_sample_weights: Optional[torch.Tensor] = None,
                mode: str = "sum", padding_idx: Optional[int] = None):
        if mode not in ("sum", "mean", "sqrtn"):
            raise ValueError(f"unknown mode {mode!r}")
        n, b = indices.numel(), offsets.numel()
        pos = torch.arange(n, device=indices.device)
        bag = torch.bucketize(pos, offsets, right=True) - 1
        keep = torch.ones(n, dtype=weight.dtype, device=weight.device)
        if padding_idx is not None:
            keep = (indices != padding_idx).to(weight.dtype)
        coef = keep if per_sample_weights is None else keep * per_sample_weights
        count = keep.new_zeros(b).index_add_(0, bag, keep).clamp(min=1)
        denom = {"sum": torch.ones_like(count), "mean": count, "sqrtn": count.sqrt()}[mode]
        out = weight.new_zeros(b, weight.size(1))
        out.index_add_(0, bag, weight[indices] * coef[:, None])
        out = out / denom[:, None]
        ctx.save_for_backward(weight, indices, bag, keep, coef, denom)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        weight, indices, bag, keep, coef, denom = ctx.saved_tensors
        grad_bag = grad_out / denom[:, None]
        grad_weight = grad_psw = None
        if ctx.needs_input_grad[0]:
            grad_weight = torch.zeros_like(weight)
            grad_weight.index_add_(0, indices, grad_bag[bag] * coef[:, None])
        if ctx.needs_input_grad[3]:
            grad_psw = (grad_bag[bag] * weight[indices]).sum(1) * keep
        return grad_weight, None, None, grad_psw, None, None
