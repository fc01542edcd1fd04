"""Emission-absorption volume rendering along rays (NeRF quadrature)."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class AlphaComposite(Function):
    """Composite S samples per ray, front to back.

    Args:
        sigma: (R, S) densities
        rgb: (R, S, C) colours of the samples
        delta: (R, S) lengths of the intervals
    Returns:
        colour (R, C) and opacity (R,)
    """

    @staticmethod
    def forward(ctx, sigma, rgb, delta):
        tau = sigma * delta
        alpha = -torch.expm1(-tau)
        trans = torch.exp(-(tau.cumsum(-1) - tau))
        weights = trans * alpha
        ctx.save_for_backward(sigma, rgb, delta, alpha, trans, weights)
        colour = (weights.unsqueeze(-1) * rgb).sum(-2)
        return colour, weights.sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g_colour, g_opacity):
        sigma, rgb, delta, alpha, trans, weights = ctx.saved_tensors
        g_rgb = weights.unsqueeze(-1) * g_colour.unsqueeze(-2)
        g_w = (rgb * g_colour.unsqueeze(-2)).sum(-1) + g_opacity.unsqueeze(-1)
        # sample j attenuates all samples behind it
        gw_w = g_w * weights
        behind = gw_w.sum(-1, keepdim=True) - gw_w.cumsum(-1)
        g_tau = g_w * trans * (1 - alpha) - behind
        return g_tau * delta, g_rgb, g_tau * sigma


def render(sigma, rgb, t_vals, background=None):
    delta = torch.diff(t_vals, dim=-1)
    colour, opacity = AlphaComposite.apply(sigma, rgb, delta)
    if background is not None:
        colour = colour + (1 - opacity).unsqueeze(-1) * background
    return colour
