import math

import torch


def _bernstein(t, n):
    return torch.stack([math.comb(n, i) * t**i * (1 - t) ** (n - i) for i in range(n + 1)])


class _RationalBezier(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, weights, t):
        ctx.save_for_backward(points, weights, t)
        b = weights[:, :, None] * _bernstein(t, weights.size(1) - 1)
        return torch.einsum("bkn,bkd->bnd", b, points) / b.sum(1)[:, :, None]

    @staticmethod
    def backward(ctx, g):
        points, weights, t = ctx.saved_tensors
        n = weights.size(1) - 1
        bern = _bernstein(t, n)
        b = weights[:, :, None] * bern
        s = b.sum(1)
        curve = torch.einsum("bkn,bkd->bnd", b, points) / s[:, :, None]
        lower = _bernstein(t, n - 1)
        pad = torch.zeros_like(t)[None]
        db = weights[:, :, None] * n * (torch.cat([pad, lower]) - torch.cat([lower, pad]))
        g = g / s[:, :, None]
        along = torch.einsum("bnd,bkd->bkn", g, points) - (g * curve).sum(-1)[:, None]
        return torch.einsum("bkn,bnd->bkd", b, g), (along * bern).sum(-1), (along * db).sum((0, 1))


def rational_bezier(points, weights, t):
    """points (B, K, D) control points, weights (B, K) > 0, t (N,) in [0, 1] -> (B, N, D); K >= 2"""
    return _RationalBezier.apply(points, weights, t)
