from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

_REDUCTIONS = ("none", "mean", "sum")


class MaskedBCEWithLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, pos_weight, mask, reduction):
        ctx.save_for_backward(logits, target, pos_weight, mask)
        ctx.reduction = reduction
        loss = (1 - target) * F.softplus(logits) + pos_weight * target * F.softplus(-logits)
        if mask is not None:
            loss = loss * mask
        if reduction == "none":
            return loss
        loss = loss.sum()
        return loss / _count(logits, mask) if reduction == "mean" else loss

    @staticmethod
    def backward(ctx, grad):
        logits, target, pos_weight, mask = ctx.saved_tensors
        if ctx.reduction == "mean":
            grad = grad / _count(logits, mask)
        if mask is not None:
            grad = grad * mask
        p = torch.sigmoid(logits)
        g_logits = grad * ((1 - target) * p - pos_weight * target * (1 - p))
        g_target = g_pos = None
        if ctx.needs_input_grad[1]:
            g_target = grad * (pos_weight * F.softplus(-logits) - F.softplus(logits))
        if ctx.needs_input_grad[2]:
            g_pos = (grad * target * F.softplus(-logits)).sum_to_size(pos_weight.shape)
        return g_logits, g_target, g_pos, None, None


def _count(logits, mask):
    if mask is None:
        return logits.numel()
    return mask.expand_as(logits).sum().clamp(min=1)


def masked_bce_with_logits(logits: Tensor, target: Tensor, *, pos_weight: Optional[Tensor] = None,
                           mask: Optional[Tensor] = None, reduction: str = "mean") -> Tensor:
    """Multi-label loss of (N, C) logits.

    Args:
        target: soft labels in [0, 1], like the logits
        pos_weight: (C,) weights of the positives
        mask: constant, bool or 0/1 float, broadcastable to the logits; entries at 0 do not count
        reduction: one of "none", "mean" (over the unmasked entries), "sum"
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f"unknown reduction {reduction!r}")
    if target.shape != logits.shape:
        raise ValueError("target and logits differ in shape")
    if pos_weight is None:
        pos_weight = logits.new_ones(logits.shape[-1])
    return MaskedBCEWithLogits.apply(logits, target, pos_weight, mask, reduction)
