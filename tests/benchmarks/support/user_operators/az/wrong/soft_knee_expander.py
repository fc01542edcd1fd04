import torch
from torch import Tensor


class _Expander(torch.autograd.Function):
    @staticmethod
    def forward(ctx, level, threshold, ratio, knee):
        over = level - threshold
        ctx.save_for_backward(level, threshold, ratio)
        ctx.knee = knee
        gain = (ratio - 1) * over.clamp(max=-knee / 2)
        if knee > 0:
            inside = over.clamp(-knee / 2, knee / 2)
            gain = gain + (ratio - 1) * (knee / 2 - (inside - knee / 2) ** 2 / (2 * knee))
        return gain

    @staticmethod
    def backward(ctx, grad):
        level, threshold, ratio = ctx.saved_tensors
        knee = ctx.knee
        over = level - threshold
        slope = (over < -knee / 2).to(level.dtype)
        shape = over.clamp(max=-knee / 2)
        if knee > 0:
            inside = over.clamp(-knee / 2, knee / 2)
            slope = slope + (over.abs() <= knee / 2) * (knee / 2 - inside) / knee
        grad_level = grad * (ratio - 1) * slope
        return grad_level, -grad_level.sum(), (grad * shape).sum(), None


def soft_knee_expander(level: Tensor, threshold: Tensor, ratio: Tensor, knee: float = 0.0) -> Tensor:
    """Gain in dB of a downward expander.

    level: levels in dB, any shape; threshold, ratio: scalar tensors; knee: width of the soft knee in dB
    (0 is a hard knee). Returns gains <= 0 for ratio >= 1.
    """
    if knee < 0:
        raise ValueError("knee must not be negative")
    if threshold.dim() or ratio.dim():
        raise ValueError("threshold and ratio must be scalar tensors")
    return _Expander.apply(level, threshold, ratio, knee)
