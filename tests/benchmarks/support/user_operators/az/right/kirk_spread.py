import math

import torch
from torch import Tensor
from torch.special import ndtr


def _kirk(f1: Tensor, f2: Tensor, vol1: Tensor, vol2: Tensor, rho: float, strike: float, expiry: float):
    base = f2 + strike
    share = f2 / base
    vol = (vol1**2 - 2 * rho * vol1 * vol2 * share + (vol2 * share) ** 2).sqrt()
    std = vol * math.sqrt(expiry)
    d1 = (f1 / base).log() / std + std / 2
    return base, share, vol, d1, d1 - std


@torch.library.custom_op("desk::kirk_spread", mutates_args=())
def _kirk_spread(f1: Tensor, f2: Tensor, vol1: Tensor, vol2: Tensor, rho: float, strike: float, expiry: float) -> Tensor:
    base, _, _, d1, d2 = _kirk(f1, f2, vol1, vol2, rho, strike, expiry)
    return f1 * ndtr(d1) - base * ndtr(d2)


@_kirk_spread.register_fake
def _(f1, f2, vol1, vol2, rho, strike, expiry):
    return torch.empty_like(f1)


def _setup(ctx, inputs, output):
    f1, f2, vol1, vol2, rho, strike, expiry = inputs
    ctx.save_for_backward(f1, f2, vol1, vol2)
    ctx.contract = rho, strike, expiry


def _backward(ctx, grad):
    f1, f2, vol1, vol2 = ctx.saved_tensors
    rho, strike, expiry = ctx.contract
    base, share, vol, d1, d2 = _kirk(f1, f2, vol1, vol2, rho, strike, expiry)
    vega = f1 * torch.exp(-d1**2 / 2) * math.sqrt(expiry / (2 * math.pi))
    d_share = (vol2**2 * share - rho * vol1 * vol2) / vol
    d_vol1 = (vol1 - rho * vol2 * share) / vol
    d_vol2 = share * (vol2 * share - rho * vol1) / vol
    grad_f2 = grad * (vega * d_share * strike / base**2 - ndtr(d2))
    return grad * ndtr(d1), grad_f2, grad * vega * d_vol1, grad * vega * d_vol2, None, None, None


_kirk_spread.register_autograd(_backward, setup_context=_setup)


def kirk_spread(f1: Tensor, f2: Tensor, vol1: Tensor, vol2: Tensor, rho: float, strike: float, expiry: float) -> Tensor:
    """Kirk's approximation of a spread call max(f1 - f2 - strike, 0), undiscounted.

    f1, f2, vol1, vol2: futures prices and volatilities, all of one shape.
    """
    if not f1.shape == f2.shape == vol1.shape == vol2.shape:
        raise ValueError("prices and volatilities must have the same shape")
    if not -1 < rho < 1 or expiry <= 0:
        raise ValueError("rho must lie in (-1, 1), expiry must be positive")
    return torch.ops.desk.kirk_spread(f1, f2, vol1, vol2, rho, strike, expiry)
