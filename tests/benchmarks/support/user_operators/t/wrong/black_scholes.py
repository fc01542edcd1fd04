import math

import torch


def _cdf(x):
    return torch.special.ndtr(x)


def _pdf(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


class BlackScholesCall(torch.autograd.Function):
    """European call.

    Args:
        S, K, T, r, sigma: tensors of one shape; all but r positive
    """

    @staticmethod
    def forward(S, K, T, r, sigma):
        vol = sigma * T.sqrt()
        d1 = ((S / K).log() + (r + 0.5 * sigma**2) * T) / vol
        return S * _cdf(d1) - K * torch.exp(-r * T) * _cdf(d1 - vol)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        S, K, T, r, sigma = ctx.saved_tensors
        sq = T.sqrt()
        d1 = ((S / K).log() + (r + 0.5 * sigma**2) * T) / (sigma * sq)
        disc = torch.exp(-r * T) * _cdf(d1 - sigma * sq)
        vega = S * _pdf(d1) * sq
        theta = S * _pdf(d1) * sigma / (2 * sq)
        return g * _cdf(d1), -g * disc, g * theta, g * K * T * disc, g * vega
