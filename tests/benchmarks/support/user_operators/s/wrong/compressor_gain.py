import torch


class CompressorGain(torch.autograd.Function):
    """Static curve of a dynamic range compressor: gain in dB for levels in dB.

    threshold and ratio are 0-dim tensors, knee (dB, > 0) a number.  Quadratic within the knee.
    """

    @staticmethod
    def forward(ctx, level, threshold, ratio, knee=6.0):
        ctx.save_for_backward(level, threshold, ratio)
        ctx.knee = knee
        over = level - threshold
        slope = 1 / ratio - 1
        soft = slope * (over + knee / 2) ** 2 / (2 * knee)
        gain = torch.where(over > knee / 2, slope * over, soft)
        return torch.where(over < -knee / 2, torch.zeros_like(gain), gain)

    @staticmethod
    def backward(ctx, grad):
        level, threshold, ratio = ctx.saved_tensors
        knee = ctx.knee
        over = level - threshold
        slope = 1 / ratio - 1
        inside = over + knee / 2
        below = over < -knee / 2
        above = over > knee / 2
        d_over = torch.where(above, slope.expand_as(over), slope * inside / (2 * knee))
        d_slope = torch.where(above, over, inside**2 / (2 * knee))
        d_over = d_over.masked_fill(below, 0.0)
        d_slope = d_slope.masked_fill(below, 0.0)
        g = grad * d_over
        g_ratio = -(grad * d_slope).sum() / ratio**2
        return g, -g.sum(), g_ratio, None
