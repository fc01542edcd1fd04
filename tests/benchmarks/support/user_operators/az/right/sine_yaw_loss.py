from typing import Optional

import torch
from torch import Tensor


class _SineYaw(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, weight, beta):
        diff = torch.sin(pred - target)
        size = diff.abs()
        loss = torch.where(size < beta, diff**2 / (2 * beta), size - beta / 2)
        ctx.save_for_backward(pred, target, weight)
        ctx.beta = beta
        return (loss * weight).sum() / weight.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad):
        pred, target, weight = ctx.saved_tensors
        diff = torch.sin(pred - target)
        slope = (diff / ctx.beta).clamp(-1, 1) * torch.cos(pred - target)
        scale = grad * weight / weight.sum().clamp(min=1)
        return scale * slope, -scale * slope, None, None


def sine_yaw_loss(pred: Tensor, target: Tensor, weight: Optional[Tensor] = None, beta: float = 1.0) -> Tensor:
    """Smooth L1 of sin(pred - target) for box headings, averaged over the positive boxes.

    Args:
        pred, target: (N,) headings in radians.
        weight: (N,) weights, float, or 0/1 of an integer type for the assigner's positives.
        beta: where the loss turns from quadratic to linear.
    """
    if beta <= 0:
        raise ValueError("beta must be positive")
    if weight is None:
        weight = torch.ones_like(pred)
    return _SineYaw.apply(pred, target, weight.detach(), beta)
