import math

import torch
from torch.autograd import Function


def _phi(d):
    return torch.exp(-0.5 * d * d) / math.sqrt(2 * math.pi)


class Bachelier(Function):
    """
    Normal model option price.

    forward, strike, vol > 0 and expiry > 0 broadcast against each other, `kind` is an integer
    tensor of +1 (call) and -1 (put) that broadcasts, too, or one int.  `discount` is a number.
    """

    @staticmethod
    def forward(ctx, forward, strike, vol, expiry, kind=1, discount=1.0):
        std = vol * expiry.sqrt()
        d = (forward - strike) / std
        ctx.save_for_backward(forward, strike, vol, expiry)
        ctx.kind = kind
        ctx.discount = discount
        return discount * (kind * (forward - strike) * torch.special.ndtr(kind * d) + std * _phi(d))

    @staticmethod
    def backward(ctx, grad):
        forward, strike, vol, expiry = ctx.saved_tensors
        root = expiry.sqrt()
        d = (forward - strike) / (vol * root)
        grad = grad * ctx.discount
        delta = grad * ctx.kind * torch.special.ndtr(ctx.kind * d)
        vega = grad * root * _phi(d)
        theta = grad * vol / (2 * expiry) * _phi(d)
        grads = (delta, -delta, vega, theta)
        shapes = (forward.shape, strike.shape, vol.shape, expiry.shape)
        return tuple(g.sum_to_size(s) for g, s in zip(grads, shapes)) + (None, None)


def bachelier_price(forward, strike, vol, expiry, *, call=True, discount=1.0):
    return Bachelier.apply(forward, strike, vol, expiry, 1 if call else -1, discount)
