"""Spoiled gradient-echo signal model used by the relaxometry fits."""
import math

import torch


class SpoiledGradientEcho(torch.autograd.Function):
    """``S = M0 sin(a) (1 - E1) / (1 - cos(a) E1) exp(-TE / T2s)`` with ``E1 = exp(-TR / T1)``.

    Args:
        m0, t1, t2s: parameter maps of one shape ``(...)``; times in seconds
        te: echo times ``(E,)``, not differentiated
        tr: repetition time in seconds
        flip: flip angle in degrees

    Returns:
        signal ``(E, ...)``
    """

    @staticmethod
    def forward(ctx, m0, t1, t2s, te, tr, flip):
        ctx.tr = tr
        ctx.angle = math.radians(flip)
        ctx.save_for_backward(m0, t1, t2s, te)
        e1 = torch.exp(-tr / t1)
        steady = math.sin(ctx.angle) * (1 - e1) / (1 - math.cos(ctx.angle) * e1)
        decay = torch.exp(-te.reshape(-1, *[1] * m0.dim()) / t2s)
        return m0 * steady * decay

    @staticmethod
    def backward(ctx, grad):
        m0, t1, t2s, te = ctx.saved_tensors
        sin, cos = math.sin(ctx.angle), math.cos(ctx.angle)
        te = te.reshape(-1, *[1] * m0.dim())
        e1 = torch.exp(-ctx.tr / t1)
        den = 1 - cos * e1
        steady = sin * (1 - e1) / den
        echo = grad * torch.exp(-te / t2s)
        total = echo.sum(0)
        d_e1 = total * m0 * sin * (cos - 1) / den
        d_t1 = d_e1 * e1 * ctx.tr / t1**2
        d_t2s = (echo * te).sum(0) * m0 * steady / t2s**2
        return total * steady, d_t1, d_t2s, None, None, None
