import math

import torch
import torch.nn.functional as F


class LogCoshLoss(torch.autograd.Function):
    """log(cosh(pred - target)), reduction 'none', 'mean' or 'sum'; equal shapes."""

    @staticmethod
    def forward(pred, target, reduction="mean"):
        if pred.is_complex():
            raise TypeError("pred must be real")
        if pred.shape != target.shape:
            raise ValueError("pred and target must have one shape")
        d = (pred - target).abs()
        loss = d + F.softplus(-2 * d) - math.log(2)
        if reduction == "none":
            return loss
        if reduction not in ("mean", "sum"):
            raise ValueError(reduction)
        return loss.mean() if reduction == "mean" else loss.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pred, target, reduction = inputs
        ctx.save_for_backward(pred, target)
        ctx.reduction = reduction

    @staticmethod
    def backward(ctx, grad):
        pred, target = ctx.saved_tensors
        slope = torch.tanh((pred - target).detach())
        if ctx.reduction == "mean":
            grad = grad / pred.numel()
        g = grad * slope
        return g, -g, None
