import math

import torch
from torch.autograd import Function


class _Beam(Function):
    @staticmethod
    def _terms(z, ex, sigma, lam, zmax):
        hit = torch.exp(-0.5 * ((z - ex) / sigma) ** 2) / (math.sqrt(2 * math.pi) * sigma)
        short = torch.where(z <= ex, lam * torch.exp(-lam * z), torch.zeros_like(z))
        at_max = (z >= zmax).to(z.dtype)
        rand = (z < zmax).to(z.dtype) / zmax
        return hit, short, at_max, rand

    @staticmethod
    def forward(ctx, z, ex, weights, sigma, lam, zmax):
        ctx.save_for_backward(z, ex, weights, sigma)
        ctx.const = lam, zmax
        terms = _Beam._terms(z, ex, sigma, lam, zmax)
        return -torch.log(sum(w * t for w, t in zip(weights.unbind(0), terms))).mean()

    @staticmethod
    def backward(ctx, g):
        z, ex, weights, sigma = ctx.saved_tensors
        lam, zmax = ctx.const
        hit, short, at_max, rand = _Beam._terms(z, ex, sigma, lam, zmax)
        w = weights.unbind(0)
        p = w[0] * hit + w[1] * short + w[2] * at_max + w[3] * rand
        gp = -g / (p * z.numel())
        res = (z - ex) / sigma**2
        g_ex = gp * w[0] * hit * res
        g_z = -g_ex - gp * w[1] * lam * short
        g_w = torch.stack([(gp * hit).sum(), (gp * short).sum(), (gp * rand).sum(), (gp * at_max).sum()])
        g_sigma = (gp * w[0] * hit * (res**2 * sigma - 1 / sigma)).sum()
        return g_z, g_ex, g_w, g_sigma, None, None


def beam_range_nll(measured, expected, weights, sigma, lam=0.5, zmax=8.0):
    """Beam model of a range finder, mean negative log-likelihood.

    measured, expected (poses, beams) [m]; weights (4,): hit, short, max, random; sigma scalar [m].
    """
    return _Beam.apply(measured, expected, weights, sigma, lam, zmax)
