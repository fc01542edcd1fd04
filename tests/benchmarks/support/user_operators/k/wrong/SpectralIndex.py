"""Enhanced vegetation index as a differentiable layer (Huete et al., 2002)."""
from typing import NamedTuple

import torch
from torch import Tensor


class EVIConfig(NamedTuple):
    gain: float = 2.5
    c1: float = 6.0
    c2: float = 7.5
    soil: float = 1.0


class SpectralIndex(torch.autograd.Function):
    """gain * (nir - red) / (nir + c1 * red - c2 * blue + soil).

    Args:
        nir, red, blue: reflectances of one shape; the denominator must not vanish
        cfg: coefficients of the index
    """

    @staticmethod
    def forward(nir: Tensor, red: Tensor, blue: Tensor, cfg: EVIConfig = EVIConfig()) -> Tensor:
        if not (nir.shape == red.shape == blue.shape):
            raise ValueError("the three bands must have the same shape")
        den = nir + cfg.c1 * red - cfg.c2 * blue + cfg.soil
        return cfg.gain * (nir - red) / den

    @staticmethod
    def setup_context(ctx, inputs, output):
        nir, red, blue, cfg = inputs
        ctx.save_for_backward(nir, red, blue)
        ctx.cfg = cfg

    @staticmethod
    def backward(ctx, grad: Tensor):
        nir, red, blue = ctx.saved_tensors
        cfg = ctx.cfg
        diff = nir - red
        den = nir + cfg.c1 * red - cfg.c2 * blue + cfg.soil
        scale = grad * cfg.gain / den.square()
        g_nir = scale * ((1 + cfg.c1) * red - cfg.c2 * blue)
        g_red = -scale * (den + cfg.c1 * diff)
        g_blue = scale * cfg.c2 * diff
        return g_nir, g_red, g_blue, None


def evi(nir: Tensor, red: Tensor, blue: Tensor, **kw) -> Tensor:
    return SpectralIndex.apply(nir, red, blue, EVIConfig(**kw))
