"""Log probability that the event falls between two visits, from cumulative hazards."""
import math

import torch


class _LogInterval(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right):
        ctx.save_for_backward(left, right)
        d = right - left
        small = torch.log(-torch.expm1(-d))
        return torch.where(d < math.log(2.0), small, torch.log1p(-torch.exp(-d))) - left

    @staticmethod
    def backward(ctx, grad):
        left, right = ctx.saved_tensors
        d = right - left
        rate = torch.exp(-d) / -torch.expm1(-d)
        return -grad * (1 + rate), grad * rate


def log_interval_probability(left, right):
    """``log(exp(-left) - exp(-right))`` for cumulative hazards ``left < right`` of one shape.

    Stable for right -> left and for right -> inf.
    """
    return _LogInterval.apply(left, right)
