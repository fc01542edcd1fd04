import math

import torch


class RelaxedLogBarrier(torch.autograd.Function):
    """Relaxed logarithmic barrier for the constraint z > 0.

    -log(z) for z > delta, and below a quadratic with the same value and slope at delta:
    ((z - 2 delta)^2 / delta^2 - 1) / 2 - log(delta)

    Args:
        z: slack, any shape
        delta: where the relaxation begins, > 0
        reduction: 'none' | 'mean' | 'sum'
    """

    @staticmethod
    def forward(ctx, z, delta=0.1, reduction="mean"):
        if delta <= 0:
            raise ValueError("delta must be positive")
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"unknown reduction {reduction!r}")
        ctx.save_for_backward(z)
        ctx.delta, ctx.reduction = delta, reduction
        quad = 0.5 * (((z - 2 * delta) / delta) ** 2 - 1) - math.log(delta)
        out = torch.where(z > delta, -torch.log(z.clamp(min=delta)), quad)
        if reduction == "mean":
            return out.mean()
        if reduction == "sum":
            return out.sum()
        return out

    @staticmethod
    def backward(ctx, grad):
        z, = ctx.saved_tensors
        d = ctx.delta
        if ctx.reduction == "mean":
            grad = grad / z.shape[0]
        slope = torch.where(z > d, -1 / z.clamp(min=d), (z - 2 * d) / d ** 2)
        return grad * slope, None, None
