"""Negative scale-invariant signal-to-distortion ratio (Le Roux et al., 2019)."""
import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

K = 10.0 / math.log(10.0)


class SISDR(Function):
    """Negative SI-SDR in dB.

    Args:
        est: estimated signals, (..., T)
        ref: reference signals, same shape
        reduction: "mean", "sum" or "none" (over the leading axes)
        eps: added to the three energies

    Both signals receive a gradient.
    """

    @staticmethod
    def forward(ctx, est, ref, reduction="mean", eps=1e-8):
        if est.shape != ref.shape:
            raise RuntimeError(f"shapes differ: {tuple(est.shape)} and {tuple(ref.shape)}")
        dot = (est * ref).sum(-1, keepdim=True)
        energy = (ref * ref).sum(-1, keepdim=True)
        alpha = dot / (energy + eps)
        signal = alpha ** 2 * energy + eps
        noise = (est - alpha * ref).pow(2).sum(-1, keepdim=True) + eps
        loss = -K * (signal.log() - noise.log()).squeeze(-1)
        ctx.save_for_backward(est, ref, dot, energy, alpha, signal, noise)
        ctx.eps, ctx.reduction = eps, reduction
        if reduction == "mean":
            return loss.mean()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        est, ref, dot, energy, alpha, signal, noise = ctx.saved_tensors
        if ctx.reduction == "none":
            grad = grad.unsqueeze(-1)
        elif ctx.reduction == "mean":
            grad = grad / dot.numel()
        grad = -K * grad
        g_alpha = 2 * alpha * energy / signal - 2 * (alpha * energy - dot) / noise
        err = est - alpha * ref
        g_est = -2 * err / noise + g_alpha * ref / (energy + ctx.eps)
        g_ref = 2 * alpha ** 2 * ref / signal + 2 * alpha * err / noise
        g_ref = g_ref + g_alpha * (est - 2 * alpha * ref) / (energy + ctx.eps)
        return grad * g_est, grad * g_ref, None, None
