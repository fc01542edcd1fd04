import torch


class _SoftKnee(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, thr, ratio, knee):
        ctx.save_for_backward(x, thr, ratio)
        ctx.knee = knee
        o = x - thr
        inside = x + (1 / ratio - 1) * (o + knee / 2) ** 2 / (2 * knee)
        return torch.where(2 * o < -knee, x, torch.where(2 * o > knee, thr + o / ratio, inside))

    @staticmethod
    def backward(ctx, g):
        x, thr, ratio = ctx.saved_tensors
        W = ctx.knee
        o = x - thr
        z = (o + W / 2).clamp(0, W)
        over = (o - W / 2).clamp(min=0)
        slope = (1 / ratio - 1) * z / W
        gx = g * (1 + slope)
        gthr = (-g * slope).sum()
        gratio = -(g * z ** 2 / (2 * W)).sum() / ratio ** 2
        return gx, gthr, gratio, None


def compress_db(level, threshold, ratio, knee=6.0):
    """static curve of a soft knee compressor, everything in dB; threshold and ratio are scalar tensors"""
    if knee <= 0:
        raise ValueError("knee must be positive")
    return _SoftKnee.apply(level, threshold, ratio, float(knee))
