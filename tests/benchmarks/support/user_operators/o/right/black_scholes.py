import math

import torch
from torch.autograd import Function


def _cdf(x):
    return 0.5 * torch.erfc(-x / math.sqrt(2))


def _pdf(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _d(spot, strike, expiry, vol, rate):
    total = vol * expiry.sqrt()
    d1 = (torch.log(spot / strike) + (rate + 0.5 * vol * vol) * expiry) / total
    return d1, d1 - total


class BlackScholes(Function):
    """European option price. All tensors broadcast; spot, strike, expiry and vol are positive."""

    @staticmethod
    def forward(ctx, spot, strike, expiry, vol, rate, call=True):
        ctx.save_for_backward(spot, strike, expiry, vol, rate)
        ctx.w = w = 1.0 if call else -1.0
        d1, d2 = _d(spot, strike, expiry, vol, rate)
        return w * (spot * _cdf(w * d1) - strike * torch.exp(-rate * expiry) * _cdf(w * d2))

    @staticmethod
    def backward(ctx, grad):
        spot, strike, expiry, vol, rate = ctx.saved_tensors
        w = ctx.w
        d1, d2 = _d(spot, strike, expiry, vol, rate)
        disc = torch.exp(-rate * expiry)
        g_spot = grad * w * _cdf(w * d1)
        g_strike = -grad * w * disc * _cdf(w * d2)
        g_vol = grad * spot * _pdf(d1) * expiry.sqrt()
        g_rate = grad * w * strike * expiry * disc * _cdf(w * d2)
        g_expiry = grad * (spot * _pdf(d1) * vol / (2 * expiry.sqrt()) + w * rate * strike * disc * _cdf(w * d2))
        grads = zip((g_spot, g_strike, g_expiry, g_vol, g_rate), ctx.saved_tensors)
        return tuple(g.sum_to_size(t.shape) for g, t in grads) + (None,)
