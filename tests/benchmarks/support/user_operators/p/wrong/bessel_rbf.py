import math

import torch
from torch import nn


class _BesselEnvelope(torch.autograd.Function):
    @staticmethod
    def _env(d, p):
        a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2), -p * (p + 1) / 2
        u = 1 + a * d ** p + b * d ** (p + 1) + c * d ** (p + 2)
        du = a * p * d ** (p - 1) + b * (p + 1) * d ** p + c * (p + 2) * d ** (p + 1)
        inside = (d < 1).to(d.dtype)
        return u * inside, du * inside

    @staticmethod
    def forward(ctx, dist, freq, cutoff, exponent):
        ctx.save_for_backward(dist, freq)
        ctx.cutoff, ctx.exponent = cutoff, exponent
        d = (dist / cutoff).unsqueeze(-1)
        u, _ = _BesselEnvelope._env(d, exponent)
        return math.sqrt(2 / cutoff) * u * torch.sin(freq * d) / d

    @staticmethod
    def backward(ctx, grad):
        dist, freq = ctx.saved_tensors
        d = (dist / ctx.cutoff).unsqueeze(-1)
        u, du = _BesselEnvelope._env(d, ctx.exponent)
        grad = grad * math.sqrt(2 / ctx.cutoff)
        s, c = torch.sin(freq * d), torch.cos(freq * d)
        radial = s / d
        d_radial = freq * c / d - s / d ** 2
        g_dist = (grad * (u * d_radial)).sum(-1) / ctx.cutoff
        g_freq = (grad * u * c).reshape(-1, freq.numel()).sum(0)
        return g_dist, g_freq, None, None


class BesselBasis(nn.Module):
    """Radial Bessel basis with a polynomial envelope, zero from the cutoff on.

    Distances must be positive.  (E,) -> (E, num_radial)
    """

    def __init__(self, num_radial=8, cutoff=5.0, envelope_exponent=6):
        super().__init__()
        self.cutoff = cutoff
        self.exponent = envelope_exponent
        self.freq = nn.Parameter(math.pi * torch.arange(1, num_radial + 1).float())

    def forward(self, dist):
        return _BesselEnvelope.apply(dist, self.freq, self.cutoff, self.exponent)
