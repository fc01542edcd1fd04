"""Emission-absorption quadrature along camera rays."""
from typing import Optional

import torch
from torch.autograd.function import once_differentiable


class CompositeRays(torch.autograd.Function):
    """Composite samples front to back.

    Args:
        sigma:  (R, S) non-negative densities
        rgb:    (R, S, C) radiance
        deltas: (R, S) step lengths
        bg:     (C,) background colour or None (black)

    Returns:
        color (R, C), opacity (R,)
    """

    @staticmethod
    def forward(ctx, sigma, rgb, deltas, bg: Optional[torch.Tensor] = None):
        assert sigma.shape == deltas.shape == rgb.shape[:2]
        tau = sigma * deltas
        acc = torch.cumsum(tau, 1)
        trans_in = torch.exp(-(acc - tau))
        trans_out = torch.exp(-acc)
        w = trans_in - trans_out
        opacity = w.sum(1)
        color = torch.einsum("rs,rsc->rc", w, rgb)
        if bg is not None:
            color = color + (1 - opacity)[:, None] * bg
        ctx.save_for_backward(sigma, rgb, deltas, bg, w, trans_out)
        return color, opacity

    @staticmethod
    @once_differentiable
    def backward(ctx, g_color, g_opacity):
        sigma, rgb, deltas, bg, w, trans_out = ctx.saved_tensors
        q = torch.einsum("rc,rsc->rs", g_color, rgb) + g_opacity[:, None]
        g_bg = None
        if bg is not None:
            q = q - (g_color @ bg)[:, None]
            g_bg = ((1 - w.sum(1))[:, None] * g_color).sum(0)
        wq = w * q
        tail = wq.sum(1, keepdim=True) - wq.cumsum(1)
        g_tau = trans_out * q - tail
        g_rgb = w[..., None] * g_color[:, None, :]
        return g_tau * deltas, g_rgb, g_tau * sigma, g_bg
