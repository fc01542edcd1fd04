import math

import torch


class GGX(torch.autograd.Function):
    """Trowbridge-Reitz distribution, n_dot_h in [0, 1], roughness in (0, 1] (alpha = roughness^2)."""

    @staticmethod
    def forward(ctx, n_dot_h, roughness):
        a2 = roughness**4
        d = n_dot_h**2 * (a2 - 1) + 1
        ctx.save_for_backward(n_dot_h, roughness)
        return a2 / (math.pi * d * d)

    @staticmethod
    def backward(ctx, g):
        n_dot_h, roughness = ctx.saved_tensors
        a2 = roughness**4
        d = n_dot_h**2 * (a2 - 1) + 1
        gd = -2 * g * a2 / (math.pi * d**3)
        g_ndh = gd * 2 * n_dot_h * (a2 - 1)
        g_a2 = g / (math.pi * d * d) + gd * n_dot_h**2
        g_rough = g_a2 * 4 * roughness**3
        return g_ndh.sum_to_size(n_dot_h.shape), g_rough.sum_to_size(roughness.shape)
