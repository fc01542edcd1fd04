"""Implied volatility of European calls by bisection, differentiated implicitly."""
import math
import torch
from torch.autograd.function import once_differentiable

_LO, _HI = 1e-4, 5.0


def _phi(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _call(spot, strike, vol, t, rate):
    srt = vol * t.sqrt()
    d1 = (torch.log(spot / strike) + rate * t) / srt + 0.5 * srt
    d2 = d1 - srt
    return spot * torch.special.ndtr(d1) - strike * torch.exp(-rate * t) * torch.special.ndtr(d2), d1, d2


class ImpliedVol(torch.autograd.Function):
    """All tensors of one shape; `rate` is a float. Prices must be attainable."""

    @staticmethod
    def forward(ctx, price, spot, strike, t, rate=0.0):
        lo, hi = torch.full_like(price, _LO), torch.full_like(price, _HI)
        for _ in range(100):
            mid = 0.5 * (lo + hi)
            above = _call(spot, strike, mid, t, rate)[0] > price
            hi = torch.where(above, mid, hi)
            lo = torch.where(above, lo, mid)
        vol = 0.5 * (lo + hi)
        ctx.save_for_backward(spot, strike, t, vol)
        ctx.rate = rate
        return vol

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        spot, strike, t, vol = ctx.saved_tensors
        r = ctx.rate
        _, d1, d2 = _call(spot, strike, vol, t, r)
        vega = spot * _phi(d1) * t.sqrt()
        g_price = g / vega
        disc = torch.exp(-r * t)
        g_spot = -g_price * torch.special.ndtr(d1)
        g_strike = g_price * torch.special.ndtr(d2)
        g_t = -g_price * (spot * _phi(d1) * vol / (2 * t.sqrt()) + r * strike * disc * torch.special.ndtr(d2))
        return g_price, g_spot, g_strike, g_t, None
