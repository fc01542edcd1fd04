import math

import torch


class SPHDensity(torch.autograd.Function):
    """rho_i = sum_j m_j W(|x_i - x_j|, h) with the poly6 kernel (3-D), self term included."""

    @staticmethod
    def forward(ctx, pos, mass, h):
        ctx.save_for_backward(pos, mass)
        ctx.h = h
        d = pos[:, None] - pos[None]
        t = (h * h - d.square().sum(-1)).clamp(min=0)
        return 315 / (64 * math.pi * h ** 9) * (t ** 3 @ mass)

    @staticmethod
    def backward(ctx, g_rho):
        pos, mass = ctx.saved_tensors
        h = ctx.h
        c = 315 / (64 * math.pi * h ** 9)
        d = pos[:, None] - pos[None]
        t = (h * h - d.square().sum(-1)).clamp(min=0)
        pair = g_rho[:, None] * mass[None] + g_rho[None] * mass[:, None]
        g_pos = (-6 * c * pair * t ** 2)[..., None] * d
        g_mass = c * (t ** 3).t() @ g_rho
        return g_pos.sum(1), g_mass, None
