"""Real spherical harmonics up to degree 2 as polynomials (for equivariant nets)."""
import math

import torch

S3, S5, S15 = math.sqrt(3.0), math.sqrt(5.0), math.sqrt(15.0)


def _poly(n):
    x, y, z = n.unbind(-1)
    return torch.stack([
        torch.ones_like(x),
        S3 * x, S3 * y, S3 * z,
        S15 * x * y, S15 * y * z, 0.5 * S5 * (2 * z * z - x * x - y * y), S15 * x * z,
        0.5 * S15 * (x * x - y * y),
    ], -1)


def _poly_vjp(n, g):
    x, y, z = n.unbind(-1)
    _, g1, g2, g3, g4, g5, g6, g7, g8 = g.unbind(-1)
    gx = S3 * g1 + S15 * (y * g4 + z * g7 + x * g8) - S5 * x * g6
    gy = S3 * g2 + S15 * (x * g4 + z * g5 - y * g8) - S5 * y * g6
    gz = S3 * g3 + S15 * (y * g5 + x * g7) + 2 * S5 * z * g6
    return torch.stack([gx, gy, gz], -1)


class _SH(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, normalize):
        ctx.save_for_backward(v)
        ctx.normalize = normalize
        return _poly(v / v.norm(dim=-1, keepdim=True) if normalize else v)

    @staticmethod
    def backward(ctx, g):
        v, = ctx.saved_tensors
        if not ctx.normalize:
            return _poly_vjp(v, g), None
        r = v.norm(dim=-1, keepdim=True)
        n = v / r
        gn = _poly_vjp(n, g)
        return (gn - n * (gn * n).sum(-1, keepdim=True)) / r, None


def real_sph_harm(v, normalize=True):
    # v: (..., 3) -> (..., 9); with normalize=True v must not be zero
    return _SH.apply(v, normalize)
