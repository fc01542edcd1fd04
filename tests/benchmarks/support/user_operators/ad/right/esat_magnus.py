import torch
from torch import Tensor

# (a, b) of Magnus over water and over ice, hPa and deg C
_E0 = 6.112
_WATER = (17.62, 243.12)
_ICE = (22.46, 272.62)


@torch.library.custom_op("metfun::esat", mutates_args=())
def esat(temp: Tensor, over_ice: bool = True) -> Tensor:
    """Saturation vapour pressure [hPa] at temp [deg C]; below freezing over ice unless told otherwise."""
    a, b = _WATER
    es = _E0 * torch.exp(a * temp / (b + temp))
    if over_ice:
        ai, bi = _ICE
        es = torch.where(temp < 0, _E0 * torch.exp(ai * temp / (bi + temp)), es)
    return es


def _setup(ctx, inputs, output):
    temp, over_ice = inputs
    ctx.save_for_backward(temp, output)
    ctx.over_ice = over_ice


def _backward(ctx, grad):
    temp, es = ctx.saved_tensors
    a, b = _WATER
    slope = a * b / (b + temp) ** 2
    if ctx.over_ice:
        ai, bi = _ICE
        slope = torch.where(temp < 0, ai * bi / (bi + temp) ** 2, slope)
    return grad * es * slope, None


esat.register_autograd(_backward, setup_context=_setup)
