from typing import Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class VolumeRender(torch.autograd.Function):
    """Emission-absorption quadrature along rays.

    Shapes: sigma (R, S), rgb (R, S, 3), delta (R, S), background (3,) or None.
    Returns colour (R, 3) and opacity (R,).
    """

    @staticmethod
    def forward(ctx, sigma: Tensor, rgb: Tensor, delta: Tensor, background: Optional[Tensor] = None):
        tau = sigma * delta
        behind = torch.exp(-tau.cumsum(-1))
        trans = torch.cat([torch.ones_like(behind[:, :1]), behind[:, :-1]], -1)
        w = trans - behind
        color = (w.unsqueeze(-1) * rgb).sum(1)
        opacity = w.sum(-1)
        if background is not None:
            color = color + (1 - opacity).unsqueeze(-1) * background
        ctx.save_for_backward(sigma, rgb, delta, background, behind, w)
        return color, opacity

    @staticmethod
    @once_differentiable
    def backward(ctx, g_color, g_opacity):
        sigma, rgb, delta, background, behind, w = ctx.saved_tensors
        gw = (rgb * g_color.unsqueeze(1)).sum(-1) + g_opacity.unsqueeze(-1)
        g_bg = None
        if background is not None:
            gw = gw - (g_color @ background).unsqueeze(-1)
            g_bg = (1 - w.sum(-1)) @ g_color
        gww = gw * w
        later = gww.flip(-1).cumsum(-1).flip(-1)
        g_tau = gw * behind - later
        return g_tau * delta, w.unsqueeze(-1) * g_color.unsqueeze(1), g_tau * sigma, g_bg
