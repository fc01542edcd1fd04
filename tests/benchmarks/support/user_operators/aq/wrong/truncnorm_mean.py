import math
import torch


def mills(alpha):
    return math.sqrt(2 / math.pi) / torch.special.erfcx(alpha / math.sqrt(2))


class TruncatedMean(torch.autograd.Function):
    """E[X | X > a], X ~ N(mu, sigma^2) (Heckman / Tobit correction). All of the same shape, sigma > 0."""

    @staticmethod
    def forward(ctx, mu, sigma, a):
        lam = mills((a - mu) / sigma)
        ctx.save_for_backward(mu, sigma, a)
        ctx.lam = lam
        return mu + sigma * lam

    @staticmethod
    def backward(ctx, g):
        mu, sigma, a = ctx.saved_tensors
        alpha = (a - mu) / sigma
        lam = ctx.lam
        d = lam * (lam - alpha)
        return g * (1 - d), g * (lam - alpha * d), g * d
