import math

import torch
from torch.autograd import Function

LN2 = math.log(2.0)
HALF_RAD = math.pi / 360


class _Pattern(Function):
    @staticmethod
    def shape(grid, pos, uvw):
        U, V, W = uvw.unbind(0)
        tan = torch.tan(pos * HALF_RAD)
        H = torch.sqrt(U * tan**2 + V * tan + W)
        x = (grid[:, None] - pos) / H
        lor = 2 / (math.pi * H * (1 + 4 * x * x))
        gau = 2 * math.sqrt(LN2 / math.pi) / H * torch.exp(-4 * LN2 * x * x)
        return tan, H, x, lor, gau

    @staticmethod
    def forward(ctx, grid, pos, area, uvw, eta):
        ctx.save_for_backward(grid, pos, area, uvw, eta)
        *_, lor, gau = _Pattern.shape(grid, pos, uvw)
        return (eta * lor + (1 - eta) * gau) @ area

    @staticmethod
    def backward(ctx, g):
        grid, pos, area, uvw, eta = ctx.saved_tensors
        tan, H, x, lor, gau = _Pattern.shape(grid, pos, uvw)
        prof = eta * lor + (1 - eta) * gau
        g_area = g @ prof
        ga = g[:, None] * area
        g_eta = (ga * (lor - gau)).sum()
        gx = -ga * x * (eta * 8 * lor / (1 + 4 * x * x) + (1 - eta) * 8 * LN2 * gau)
        g_var = -(ga * prof + gx * x).sum(0) / H
        g_uvw = torch.stack([(g_var * tan**2).sum(), (g_var * tan).sum(), g_var.sum()])
        U, V = uvw[0], uvw[1]
        g_pos = -(gx / H).sum(0) + g_var * (2 * U * tan + V) * (1 + tan**2) * HALF_RAD
        return (gx / H).sum(1), g_pos, g_area, g_uvw, g_eta


def caglioti_pattern(grid, pos, area, uvw, eta):
    """Powder pattern of pseudo-Voigt reflections with Caglioti widths, H^2 = U tan^2 + V tan + W.

    grid (N,) 2theta [deg], pos (P,) 2theta [deg], area (P,), uvw (3,) [deg^2], eta scalar Lorentzian fraction
    """
    return _Pattern.apply(grid, pos, area, uvw, eta)
