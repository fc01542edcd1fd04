import math

import torch
from torch.special import ndtr


def _phi(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _d12(S, K, T, sigma, r):
    vol = sigma * T.sqrt()
    d1 = (torch.log(S / K) + (r + 0.5 * sigma ** 2) * T) / vol
    return d1, d1 - vol


class BlackScholesPrice(torch.autograd.Function):
    # all five of one shape

    @staticmethod
    def forward(ctx, S, K, T, sigma, r, call):
        d1, d2 = _d12(S, K, T, sigma, r)
        w = 1.0 if call else -1.0
        ctx.save_for_backward(S, K, T, sigma, r)
        ctx.w = w
        return w * (S * ndtr(w * d1) - K * torch.exp(-r * T) * ndtr(w * d2))

    @staticmethod
    def backward(ctx, grad):
        S, K, T, sigma, r = ctx.saved_tensors
        w = ctx.w
        d1, d2 = _d12(S, K, T, sigma, r)
        disc = torch.exp(-r * T)
        exercise = w * K * disc * ndtr(w * d2)
        delta = w * ndtr(w * d1)
        dual_delta = -w * disc * ndtr(w * d2)
        density = S * _phi(d1)
        maturity = 0.5 * density * sigma / T.sqrt() + r * exercise
        vega = density * T.sqrt()
        rho = T * exercise * w
        return grad * delta, grad * dual_delta, grad * maturity, grad * vega, grad * rho, None


def black_scholes(S, K, T, sigma, r=0.0, call=True):
    """European option price without dividends; arguments broadcast."""
    r = torch.as_tensor(r, dtype=S.dtype, device=S.device)
    return BlackScholesPrice.apply(*torch.broadcast_tensors(S, K, T, sigma, r), call)
