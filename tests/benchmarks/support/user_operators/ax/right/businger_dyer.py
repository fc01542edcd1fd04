import math

import torch

KAPPA = 0.4


def _psi(zeta, kind):
    x = (1 - 16 * zeta.clamp(max=0)) ** 0.25
    if kind == "momentum":
        unstable = 2 * ((1 + x) / 2).log() + ((1 + x**2) / 2).log() - 2 * torch.atan(x) + math.pi / 2
    elif kind == "heat":
        unstable = 2 * ((1 + x**2) / 2).log()
    else:
        raise ValueError("kind is 'momentum' or 'heat'")
    return torch.where(zeta < 0, unstable, -5 * zeta)


def _psi_slope(zeta, kind="momentum"):
    x = (1 - 16 * zeta.clamp(max=0)) ** 0.25
    if kind == "momentum":
        dx = 2 / (1 + x) + (2 * x - 2) / (1 + x**2)
    else:
        dx = 4 * x / (1 + x**2)
    return torch.where(zeta < 0, -4 * dx / x**3, torch.full_like(zeta, -5))


class SurfaceLayer(torch.autograd.Function):
    """Monin-Obukhov profile with the Businger-Dyer functions.

    Args:
        z: heights, ``(n,)``, above the roughness length.
        rough: roughness length, positive, 0-dim.
        scale: friction velocity or temperature scale, 0-dim.
        inv_obukhov: inverse Obukhov length, 0-dim, not zero (negative if unstable).
        kind: ``"momentum"`` or ``"heat"``.
    """

    @staticmethod
    def forward(ctx, z, rough, scale, inv_obukhov, kind="momentum"):
        ctx.save_for_backward(z, rough, scale, inv_obukhov)
        ctx.kind = kind
        return scale / KAPPA * ((z / rough).log() - _psi(z * inv_obukhov, kind) + _psi(rough * inv_obukhov, kind))

    @staticmethod
    def backward(ctx, grad):
        z, rough, scale, inv_obukhov = ctx.saved_tensors
        top, bottom = z * inv_obukhov, rough * inv_obukhov
        shape = (z / rough).log() - _psi(top, ctx.kind) + _psi(bottom, ctx.kind)
        s_top, s_bottom = _psi_slope(top, ctx.kind), _psi_slope(bottom, ctx.kind)
        g = grad * scale / KAPPA
        g_z = g * (1 / z - s_top * inv_obukhov)
        g_rough = (s_bottom * inv_obukhov - 1 / rough) * g.sum()
        g_inv = (g * (s_bottom * rough - s_top * z)).sum()
        return g_z, g_rough, (grad * shape).sum() / KAPPA, g_inv, None
