import math
from typing import Optional

import torch
from torch import nn
from torch.autograd.function import once_differentiable

_TEN_LOG10 = 10.0 / math.log(10.0)


class _PowerToDB(torch.autograd.Function):
    @staticmethod
    def forward(ctx, power, amin, top_db):
        db = _TEN_LOG10 * torch.log(power.clamp(min=amin))
        ctx.amin = amin
        below = None
        peak = db.new_zeros(0, dtype=torch.long)
        if top_db is not None:
            flat = db.flatten(1)
            top, peak = flat.max(dim=1)
            floor = (top - top_db).unsqueeze(1)
            below = flat < floor
            db = torch.maximum(flat, floor).view_as(db)
        ctx.clipped = below is not None
        if below is None:
            below = peak
        ctx.save_for_backward(power, peak, below)
        return db

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_db):
        power, peak, below = ctx.saved_tensors
        grad = grad_db
        if ctx.clipped:
            flat = grad_db.flatten(1)
            flat = flat.masked_fill(below, 0.0)
            grad = flat.view_as(power)
        slope = torch.where(power > ctx.amin, _TEN_LOG10 / power.clamp(min=ctx.amin), torch.zeros_like(power))
        return grad * slope, None, None


class PowerToDB(nn.Module):
    """Power spectrogram to decibels.

    Args:
        amin: powers are clamped from below to this value (no gradient at or below it).
        top_db: if given, each batch item is clamped to ``max - top_db``; the
            clamped bins follow the item's maximum (its first occurrence).

    Shape: ``(batch, ...)`` to the same shape.
    """

    def __init__(self, amin: float = 1e-10, top_db: Optional[float] = 80.0):
        super().__init__()
        self.amin, self.top_db = amin, top_db

    def forward(self, power):
        return _PowerToDB.apply(power, self.amin, self.top_db)
