"""Vegetation indices that run inside exported graphs."""
import torch
from torch import Tensor


@torch.library.custom_op("spectral_b::savi", mutates_args=())
def savi(nir: Tensor, red: Tensor, soil: float = 0.5) -> Tensor:
    """Soil adjusted vegetation index (1 + L) (nir - red) / (nir + red + L) of two bands of one shape."""
    return (1 + soil) * (nir - red) / (nir + red + soil)


@savi.register_fake
def _(nir, red, soil=0.5):
    return torch.empty_like(nir)


def _setup(ctx, inputs, output):
    nir, red, ctx.soil = inputs
    ctx.save_for_backward(nir, red)


def _backward(ctx, grad):
    nir, red = ctx.saved_tensors
    soil = ctx.soil
    g = grad * (1 + soil) / (nir + red + soil) ** 2
    return g * (2 * red + soil), -g * 2 * nir, None


savi.register_autograd(_backward, setup_context=_setup)
