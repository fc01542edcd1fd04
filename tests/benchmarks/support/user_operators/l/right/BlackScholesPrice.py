"""Black-Scholes prices with analytic greeks as gradients."""
import math

import torch
from torch import Tensor
from torch.autograd import Function


def _cdf(x: Tensor) -> Tensor:
    return 0.5 * torch.erfc(-x / math.sqrt(2.0))


def _pdf(x: Tensor) -> Tensor:
    return torch.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _d1_d2(S, K, T, r, vol):
    sd = vol * torch.sqrt(T)
    d1 = (torch.log(S / K) + (r + 0.5 * vol * vol) * T) / sd
    return d1, d1 - sd


class BlackScholesPrice(Function):
    """European option price.

    All of spot, strike, maturity (years), rate and vol have one shape and, but for the rate,
    are positive.  call=False prices the put.
    """

    @staticmethod
    def forward(ctx, spot, strike, maturity, rate, vol, call=True):
        d1, d2 = _d1_d2(spot, strike, maturity, rate, vol)
        s = 1.0 if call else -1.0
        ctx.save_for_backward(spot, strike, maturity, rate, vol)
        ctx.sign = s
        return s * (spot * _cdf(s * d1) - strike * torch.exp(-rate * maturity) * _cdf(s * d2))

    @staticmethod
    def backward(ctx, grad):
        S, K, T, r, vol = ctx.saved_tensors
        d1, d2 = _d1_d2(S, K, T, r, vol)
        s = ctx.sign
        disc = torch.exp(-r * T)
        exercised = s * disc * _cdf(s * d2)
        delta = s * _cdf(s * d1)
        vega = S * _pdf(d1) * torch.sqrt(T)
        theta = vega * vol / (2 * T) + r * K * exercised
        rho = K * T * exercised
        return grad * delta, -grad * exercised, grad * theta, grad * rho, grad * vega, None


def call_price(spot, strike, maturity, rate, vol):
    args = torch.broadcast_tensors(spot, strike, maturity, rate, vol)
    return BlackScholesPrice.apply(*args)
