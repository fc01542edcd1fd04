import math

import torch
from torch.autograd import Function


class _PsychNLL(Function):
    @staticmethod
    def forward(ctx, level, hits, trials, mu, sigma, lapse, guess):
        ctx.save_for_backward(level, hits, trials, mu, sigma, lapse)
        ctx.guess = guess
        z = (level - mu) / sigma
        p = guess + (1 - guess - lapse) * torch.special.ndtr(z)
        return -(hits * torch.log(p) + (trials - hits) * torch.log1p(-p)).sum()

    @staticmethod
    def backward(ctx, g):
        level, hits, trials, mu, sigma, lapse = ctx.saved_tensors
        z = (level - mu) / sigma
        cdf = torch.special.ndtr(z)
        pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        span = 1 - ctx.guess - lapse
        p = ctx.guess + span * cdf
        gp = g * ((trials - hits) / (1 - p) - hits / p)
        gz = gp * span * pdf / sigma
        return gz, None, None, -gz.sum(), -(gz * z).sum(), -(gp * cdf).sum(), None


def psychometric_nll(level, hits, trials, mu, sigma, lapse, guess=0.5):
    """Binomial NLL of a cumulative-Gaussian psychometric function.

    level (N,), hits and trials (N,) integer counts; threshold mu, spread sigma, lapse rate scalars.
    """
    return _PsychNLL.apply(level, hits, trials, mu, sigma, lapse, guess)
