import math
import torch
from torch.special import ndtr


def _d12(S, K, T, r, vol):
    sq = vol * torch.sqrt(T)
    d1 = (torch.log(S / K) + (r + 0.5 * vol ** 2) * T) / sq
    return d1, d1 - sq


class _BS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, S, K, T, r, vol, put):
        ctx.save_for_backward(S, K, T, r, vol)
        ctx.sign = w = -1.0 if put else 1.0
        d1, d2 = _d12(S, K, T, r, vol)
        return w * (S * ndtr(w * d1) - K * torch.exp(-r * T) * ndtr(w * d2))

    @staticmethod
    def backward(ctx, g):
        S, K, T, r, vol = ctx.saved_tensors
        w = ctx.sign
        d1, d2 = _d12(S, K, T, r, vol)
        disc = torch.exp(-r * T)
        pdf = torch.exp(-0.5 * d1 ** 2) / math.sqrt(2 * math.pi)
        delta = w * ndtr(w * d1)
        dual = -w * disc * ndtr(w * d2)
        vega = S * pdf * torch.sqrt(T)
        rho = w * K * T * disc * ndtr(w * d2)
        theta = S * pdf * vol / (2 * torch.sqrt(T)) + w * r * K * disc * ndtr(w * d2)
        return g * delta, g * dual, g * theta, None, g * vega, None


def black_scholes(spot, strike, expiry, rate, vol, put=False):
    """spot, strike, expiry, vol (N,), rate () -> option values (N,); backward returns the greeks"""
    return _BS.apply(spot, strike, expiry, rate, vol, put)
