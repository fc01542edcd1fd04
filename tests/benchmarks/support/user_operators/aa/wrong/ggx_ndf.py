import math

import torch
from torch import Tensor


class _GGX(torch.autograd.Function):
    @staticmethod
    def forward(ctx, nh, rough, squared):
        ctx.save_for_backward(nh, rough)
        ctx.squared = squared
        a2 = rough ** 4 if squared else rough ** 2
        den = nh * nh * (a2 - 1) + 1
        return torch.where(nh > 0, a2 / (math.pi * den * den), torch.zeros_like(den))

    @staticmethod
    def backward(ctx, g):
        nh, rough = ctx.saved_tensors
        a2 = rough ** 4 if ctx.squared else rough ** 2
        da2 = 4 * rough ** 3
        den = nh * nh * (a2 - 1) + 1
        g = torch.where(nh > 0, g, torch.zeros_like(g)) / math.pi
        g_nh = -4 * g * a2 * nh * (a2 - 1) / den ** 3
        g_a2 = g * (1 / den ** 2 - 2 * a2 * nh * nh / den ** 3)
        return g_nh.sum_to_size(nh.shape), (g_a2 * da2).sum_to_size(rough.shape), None


def ggx_ndf(n_dot_h: Tensor, roughness: Tensor, remap: str = "squared") -> Tensor:
    """Trowbridge-Reitz distribution of normals.

    n_dot_h and roughness broadcast; values of n_dot_h below the horizon give zero.
    remap: "squared" takes alpha = roughness^2 (Disney), "none" takes alpha = roughness
    """
    assert remap in ("squared", "none")
    return _GGX.apply(n_dot_h, roughness, remap == "squared")
