"""Radial Bessel basis with polynomial envelope, as in DimeNet."""
import math

import torch
from torch import nn


class _RBF(torch.autograd.Function):
    @staticmethod
    def _envelope(u, p):
        a = -(p + 1) * (p + 2) / 2
        b = p * (p + 2)
        c = -p * (p + 1) / 2
        live = (u < 1).to(u.dtype)
        env = (1 + a * u ** p + b * u ** (p + 1) + c * u ** (p + 2)) * live
        denv = (a * p * u ** (p - 1) + b * (p + 1) * u ** p + c * (p + 2) * u ** (p + 1)) * live
        return env, denv

    @staticmethod
    def forward(ctx, d, freq, cutoff, p):
        ctx.save_for_backward(d, freq)
        ctx.cutoff, ctx.p = cutoff, p
        u = (d / cutoff).unsqueeze(-1)
        env, _ = _RBF._envelope(u, p)
        return math.sqrt(2 / cutoff) * env * torch.sin(freq * u) / d.unsqueeze(-1)

    @staticmethod
    def backward(ctx, g):
        d, freq = ctx.saved_tensors
        r = d.unsqueeze(-1)
        u = r / ctx.cutoff
        env, denv = _RBF._envelope(u, ctx.p)
        s, c = torch.sin(freq * u), torch.cos(freq * u)
        norm = math.sqrt(2 / ctx.cutoff)
        gd = norm * ((denv * s + env * freq * c) / ctx.cutoff - env * s / r) / r
        gfreq = norm * env * c * u / r
        return (g * gd).sum(-1), (g * gfreq).flatten(0, -2).sum(0), None, None


class BesselBasis(nn.Module):
    def __init__(self, num_radial: int, cutoff: float = 5.0, envelope_exponent: int = 5):
        super().__init__()
        if envelope_exponent < 2:
            raise ValueError("envelope_exponent")
        self.cutoff = cutoff
        self.p = envelope_exponent + 1
        self.freq = nn.Parameter(math.pi * torch.arange(1, num_radial + 1, dtype=torch.get_default_dtype()))

    def forward(self, dist):
        """dist (...) > 0 -> (..., num_radial)"""
        return _RBF.apply(dist, self.freq, self.cutoff, self.p)
