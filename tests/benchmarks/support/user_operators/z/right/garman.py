import math

import torch
from torch import Tensor


def _ncdf(x):
    return 0.5 * torch.erfc(-x / math.sqrt(2))


def _d12(spot, strike, rd, rf, vol, t):
    sd = vol * t.sqrt()
    d1 = ((spot / strike).log() + (rd - rf) * t) / sd + 0.5 * sd
    return d1, d1 - sd


@torch.library.custom_op("zops::garman_kohlhagen", mutates_args=())
def garman_kohlhagen(
    spot: Tensor, strike: Tensor, rd: Tensor, rf: Tensor, vol: Tensor, t: Tensor, call: bool = True
) -> Tensor:
    """European FX option in domestic currency; rd and rf are the domestic and foreign rates."""
    s = 1.0 if call else -1.0
    d1, d2 = _d12(spot, strike, rd, rf, vol, t)
    return s * (spot * (-rf * t).exp() * _ncdf(s * d1) - strike * (-rd * t).exp() * _ncdf(s * d2))


@garman_kohlhagen.register_fake
def _(spot, strike, rd, rf, vol, t, call=True):
    return torch.empty_like(spot)


def _setup(ctx, inputs, output):
    *tensors, ctx.call = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx, g):
    spot, strike, rd, rf, vol, t = ctx.saved_tensors
    s = 1.0 if ctx.call else -1.0
    d1, d2 = _d12(spot, strike, rd, rf, vol, t)
    df, dd = (-rf * t).exp(), (-rd * t).exp()
    n1, n2 = s * df * _ncdf(s * d1), s * dd * _ncdf(s * d2)
    pdf = (-0.5 * d1 * d1).exp() / math.sqrt(2 * math.pi)
    vega = spot * df * pdf * t.sqrt()
    rho_d = strike * t * n2
    rho_f = -spot * t * n1
    theta = 0.5 * vega * vol / t + rd * strike * n2 - rf * spot * n1
    return g * n1, -g * n2, g * rho_d, g * rho_f, g * vega, g * theta, None


garman_kohlhagen.register_autograd(_backward, setup_context=_setup)
