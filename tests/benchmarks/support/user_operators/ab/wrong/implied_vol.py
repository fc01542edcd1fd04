import math

import torch
from torch.autograd.function import once_differentiable


def _ncdf(x):
    return 0.5 * torch.erfc(-x / math.sqrt(2))


def _npdf(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _price(sigma, spot, strike, t, rate, call):
    root = sigma * t.sqrt()
    d1 = (torch.log(spot / strike) + rate * t) / root + 0.5 * root
    d2 = d1 - root
    kd = strike * torch.exp(-rate * t)
    c = spot * _ncdf(d1) - kd * _ncdf(d2)
    return torch.where(call, c, c - spot + kd), d1, d2, kd


class ImpliedVolatility(torch.autograd.Function):
    """Black-Scholes volatility of option prices inside the no-arbitrage bounds, by Newton's method.

    price, spot, t and the bool ``call`` have one shape; strike is a constant. The derivative is
    that of the implicit function, not of the iteration.
    """

    @staticmethod
    def forward(ctx, price, spot, strike, t, rate, call, iterations=60):
        sigma = (2 * (torch.log(spot / strike) + rate * t).abs() / t).sqrt().clamp(min=0.2)
        for _ in range(iterations):
            p, d1, *_rest = _price(sigma, spot, strike, t, rate, call)
            vega = spot * _npdf(d1) * t.sqrt()
            sigma = (sigma - (p - price) / vega.clamp(min=1e-8)).clamp(1e-4, 10.0)
        ctx.save_for_backward(sigma, spot, strike, t, call)
        ctx.rate = rate
        return sigma

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        sigma, spot, strike, t, call = ctx.saved_tensors
        _, d1, d2, kd = _price(sigma, spot, strike, t, ctx.rate, call)
        k = g / (spot * _npdf(d1) * t.sqrt())
        delta = torch.where(call, _ncdf(d1), _ncdf(d1) - 1)
        by_t = spot * _npdf(d1) * sigma / (2 * t.sqrt())
        by_t = by_t + ctx.rate * kd * torch.where(call, _ncdf(d2), _ncdf(d2) - 1)
        return k, -k * delta, None, -k * by_t, None, None
