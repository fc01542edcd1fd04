import math

import torch
from torch import Tensor
from torch.autograd import Function

EPS = 1e-8


class ScaleInvariantSDR(Function):
    """
    Scale-invariant signal-to-distortion ratio in dB.

    Args:
        preds: ``(..., time)``
        target: ``(..., time)``, neither silent
        zero_mean: subtract the mean of both beforehand

    Returns:
        ``(...)``
    """

    @staticmethod
    def _parts(preds: Tensor, target: Tensor, zero_mean: bool):
        if zero_mean:
            preds = preds - preds.mean(-1, keepdim=True)
            target = target - target.mean(-1, keepdim=True)
        dot = (preds * target).sum(-1, keepdim=True) + EPS
        energy = (target * target).sum(-1, keepdim=True) + EPS
        scaled = dot / energy * target
        noise = scaled - preds
        signal_power = (scaled * scaled).sum(-1, keepdim=True) + EPS
        noise_power = (noise * noise).sum(-1, keepdim=True) + EPS
        return preds, target, dot, energy, scaled, noise, signal_power, noise_power

    @staticmethod
    def forward(ctx, preds, target, zero_mean=False):
        if preds.shape != target.shape:
            raise RuntimeError("Predictions and targets are expected to have the same shape")
        *_, signal_power, noise_power = ScaleInvariantSDR._parts(preds, target, zero_mean)
        ctx.zero_mean = zero_mean
        ctx.save_for_backward(preds, target)
        return 10 * torch.log10(signal_power / noise_power).squeeze(-1)

    @staticmethod
    def backward(ctx, grad_output):
        p, t, dot, energy, scaled, noise, ps, pn = ScaleInvariantSDR._parts(*ctx.saved_tensors, ctx.zero_mean)
        factor = 20 / math.log(10) * grad_output.unsqueeze(-1)
        grad_scaled = factor * (scaled / ps - noise / pn)
        grad_p = factor * noise / pn
        along = (grad_scaled * t).sum(-1, keepdim=True)
        grad_p = grad_p + along / energy * t
        grad_t = dot / energy * grad_scaled + along / energy * p - 2 * along * dot / energy**2 * t
        if ctx.zero_mean:
            grad_p = grad_p - grad_p.mean(-1, keepdim=True)
            grad_t = grad_t - grad_t.mean(-1, keepdim=True)
        return grad_p, grad_t, None
