import torch
import torch.nn as nn
from torch.autograd import Function


def _mean_fall(s):
    """(1 - exp(-s)) / s and its derivative"""
    tiny = s.abs() < 1e-2
    ss = torch.where(tiny, torch.ones_like(s), s)
    h = torch.where(tiny, 1 - s / 2 + s ** 2 / 6 - s ** 3 / 24 + s ** 4 / 120, -torch.expm1(-ss) / ss)
    dh = torch.where(tiny, -0.5 + s / 3 - s ** 2 / 8 + s ** 3 / 30, (torch.exp(-ss) - h) / ss)
    return h, dh


class _Fog(Function):
    @staticmethod
    def forward(ctx, z0, dz, dist, rho, b):
        ctx.save_for_backward(z0, dz, dist, rho, b)
        h, _ = _mean_fall(b * dz * dist)
        return torch.exp(-rho * torch.exp(-b * z0) * dist * h)

    @staticmethod
    def backward(ctx, g):
        z0, dz, dist, rho, b = ctx.saved_tensors
        s = b * dz * dist
        h, dh = _mean_fall(s)
        e = torch.exp(-b * z0)
        tau = rho * e * dist * h
        gt = -g * torch.exp(-tau)
        a = rho * e * dist * dh
        g_z0 = -gt * b * tau
        g_dz = gt * a * b * dist
        g_dist = gt * rho * e * h
        g_rho = (gt * e * dist * h).sum()
        g_b = (gt * (a * dz * dist - z0 * tau)).sum()
        return g_z0, g_dz, g_dist, g_rho, g_b


class HeightFog(nn.Module):
    """Transmittance of fog with density rho * exp(-b z) along a ray.

    forward(z0, dz, dist): height of the eye, vertical component of the direction (0 for a
    horizontal ray), distance; all of one shape.
    """

    def __init__(self, density=0.2, falloff=0.5):
        super().__init__()
        self.density = nn.Parameter(torch.tensor(density))
        self.falloff = nn.Parameter(torch.tensor(falloff))

    def forward(self, z0, dz, dist):
        return _Fog.apply(z0, dz, dist, self.density, self.falloff)
