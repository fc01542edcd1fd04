import math
import torch
from torch import Tensor


@torch.library.custom_op("shading::ggx", mutates_args=())
def ggx(n_dot_h: Tensor, n_dot_v: Tensor, rough: Tensor, min_rough: float = 0.05) -> Tensor:
    """Trowbridge-Reitz D times Smith G1 for texels; rough (C,) is one roughness for each material,
    n_dot_h and n_dot_v (..., C) cosines. alpha = max(rough, min_rough)^2."""
    a2 = rough.clamp(min=min_rough) ** 4
    t = n_dot_h ** 2 * (a2 - 1) + 1
    D = a2 / (math.pi * t ** 2)
    s = torch.sqrt(a2 + (1 - a2) * n_dot_v ** 2)
    return D * 2 * n_dot_v / (n_dot_v + s)


def _setup(ctx, inputs, output):
    n_dot_h, n_dot_v, rough, min_rough = inputs
    ctx.save_for_backward(n_dot_h, n_dot_v, rough, output)
    ctx.min_rough = min_rough


def _backward(ctx, g):
    nh, nv, rough, out = ctx.saved_tensors
    r = rough.clamp(min=ctx.min_rough)
    a2 = r ** 4
    t = nh ** 2 * (a2 - 1) + 1
    s = torch.sqrt(a2 + (1 - a2) * nv ** 2)
    go = g * out
    g_nh = go * -4 * nh * (a2 - 1) / t
    g_nv = go * (1 / nv - (1 + (1 - a2) * nv / s) / (nv + s))
    g_a2 = go * (1 / a2 - 2 * nh ** 2 / t - (1 - nv ** 2) / (2 * s * (nv + s)))
    g_r = (g_a2 * 4 * r ** 3).reshape(-1, rough.numel()).sum(0)
    g_r = g_r * (rough >= ctx.min_rough)
    return g_nh, g_nv, g_r, None


ggx.register_autograd(_backward, setup_context=_setup)
