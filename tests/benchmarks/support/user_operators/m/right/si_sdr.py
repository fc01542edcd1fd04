import math

import torch


class SISDR(torch.autograd.Function):
    """Scale-invariant signal-to-distortion ratio in dB, per row.

    Args:
        estimate, target: (B, T)
        zero_mean: subtract the mean of each row first.

    Returns:
        (B,) tensor
    """

    @staticmethod
    def forward(ctx, estimate, target, zero_mean=True):
        ctx.save_for_backward(estimate, target)
        ctx.zero_mean = zero_mean
        e, t = SISDR._center(ctx, estimate, target)
        a, tt, ee = (e * t).sum(1), (t * t).sum(1), (e * e).sum(1)
        return 10 * torch.log10(a * a / (tt * ee - a * a))

    @staticmethod
    def _center(ctx, e, t):
        if ctx.zero_mean:
            e = e - e.mean(1, keepdim=True)
            t = t - t.mean(1, keepdim=True)
        return e, t

    @staticmethod
    def backward(ctx, grad_output):
        e, t = SISDR._center(ctx, *ctx.saved_tensors)
        a = (e * t).sum(1, keepdim=True)
        tt = (t * t).sum(1, keepdim=True)
        ee = (e * e).sum(1, keepdim=True)
        den = tt * ee - a * a
        scale = (20 / math.log(10)) * grad_output[:, None]
        grad_e = scale * (t / a - (tt * e - a * t) / den)
        grad_t = scale * (e / a - (ee * t - a * e) / den)
        return grad_e, grad_t, None
