import math

import torch


class _RadialBessel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dist, freq, cutoff, p):
        x = dist / cutoff
        ctx.save_for_backward(x, freq)
        ctx.cutoff, ctx.p = cutoff, p
        env, _ = _envelope(x, p)
        return math.sqrt(2 / cutoff) * (env / x)[..., None] * torch.sin(freq * x[..., None])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, freq = ctx.saved_tensors
        env, slope = _envelope(x, ctx.p)
        c = math.sqrt(2 / ctx.cutoff)
        s, co = torch.sin(freq * x[..., None]), torch.cos(freq * x[..., None])
        d_amp = (slope * x - env) / (x * x)
        gx = c * (g * (d_amp[..., None] * s + (env / x)[..., None] * freq * co)).sum(-1)
        gf = c * (g * env[..., None] * co).flatten(0, -2).sum(0)
        return gx / ctx.cutoff, gf, None, None


def _envelope(x, p):
    a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2.0), -p * (p + 1) / 2
    inside = (x < 1).to(x.dtype)
    value = 1 + a * x ** p + b * x ** (p + 1) + c * x ** (p + 2)
    slope = a * p * x ** (p - 1) + b * (p + 1) * x ** p + c * (p + 2) * x ** (p + 2)
    return value * inside, slope * inside


def bessel_basis(dist, freq, cutoff=5.0, p=6):
    """Radial Bessel functions under DimeNet's smooth envelope.

    dist: (...) > 0; freq: (n,), usually pi, 2 pi, ... -> (..., n); zero from the cutoff on.
    """
    assert p >= 3
    return _RadialBessel.apply(dist, freq, float(cutoff), int(p))
