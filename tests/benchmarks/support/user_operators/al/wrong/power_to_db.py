import math

import torch
from torch.autograd import Function


class PowerToDB(Function):
    """Power spectrogram to decibel with a floor ``top_db`` below the peak of each example.

    Args:
        power: ``(B, ...)``
        amin: smallest power that is told apart from zero
        top_db: dynamic range, or None for no floor
    """

    @staticmethod
    def forward(ctx, power, amin=1e-10, top_db=80.0):
        ctx.amin = amin
        ctx.below = None
        db = 10.0 * torch.log10(power.clamp_min(amin))
        if top_db is not None:
            peak, ctx.peak_at = db.flatten(1).max(1)
            floor = (peak - top_db).reshape(-1, *[1] * (db.dim() - 1))
            ctx.below = db < floor
            db = torch.maximum(db, floor)
        ctx.save_for_backward(power)
        return db

    @staticmethod
    def backward(ctx, grad):
        (power,) = ctx.saved_tensors
        if ctx.below is not None:
            # the floor moves with the peak
            moved = (grad * ctx.below).flatten(1).sum(1, keepdim=True)
            grad = grad.masked_fill(ctx.below, 0.0).flatten(1)
            grad = grad.reshape(power.shape)
        slope = (10.0 / math.log(10.0)) / power.clamp_min(ctx.amin)
        return grad * slope * (power > ctx.amin), None, None
