import math

import torch
from torch.autograd.function import once_differentiable


def _ncdf(x):
    return 0.5 * torch.erfc(-x / math.sqrt(2.0))


class BlackScholes(torch.autograd.Function):
    """European option value; all tensor arguments share one shape.

    Args:
        spot, strike, vol, rate, expiry: market data, annualised.
        call: value a call if True, else a put.
    """

    @staticmethod
    def forward(ctx, spot, strike, vol, rate, expiry, call: bool = True):
        sd = vol * expiry.sqrt()
        d1 = ((spot / strike).log() + (rate + 0.5 * vol * vol) * expiry) / sd
        disc = torch.exp(-rate * expiry)
        sgn = 1.0 if call else -1.0
        n1, n2 = _ncdf(sgn * d1), _ncdf(sgn * (d1 - sd))
        ctx.sgn = sgn
        ctx.save_for_backward(spot, strike, vol, rate, expiry, d1, n1, n2, disc)
        return sgn * (spot * n1 - strike * disc * n2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        spot, strike, vol, rate, expiry, d1, n1, n2, disc = ctx.saved_tensors
        sgn = ctx.sgn
        root = expiry.sqrt()
        density = torch.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi)
        delta = sgn * n1
        d_strike = -sgn * disc * n2
        vega = spot * density * root
        rho = strike * expiry * disc * n2
        d_expiry = spot * density * vol / (2 * root) + sgn * rate * strike * disc * n2
        return tuple(grad_output * d for d in (delta, d_strike, vega, rho, d_expiry)) + (None,)
