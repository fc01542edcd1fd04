import math

import torch
from torch import nn

OMEGA, G, RADIUS = 7.292e-5, 9.80665, 6.371e6


class _Geostrophic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, north, fu, fv):
        ctx.save_for_backward(north, fu, fv)
        dz_e = torch.roll(z, -1, -1) - torch.roll(z, 1, -1)
        return torch.stack([-fu[:, None] * (north @ z), fv[:, None] * dz_e], -3)

    @staticmethod
    def backward(ctx, g):
        north, fu, fv = ctx.saved_tensors
        gu, gv = g.unbind(-3)
        e = fv[:, None] * gv
        return torch.roll(e, 1, -1) - torch.roll(e, -1, -1) - north.T @ (fu[:, None] * gu), None, None, None


class GeostrophicWind(nn.Module):
    """(u, v) [m/s] from geopotential height z (..., lat, lon) [m] on a regular global belt.

    lat: latitudes in degrees, evenly spaced, off the equator; longitudes go round the globe.
    """

    def __init__(self, lat, nlon):
        super().__init__()
        lat = torch.deg2rad(torch.as_tensor(lat, dtype=torch.float64))
        n, step = len(lat), float(lat[1] - lat[0])
        f = 2 * OMEGA * torch.sin(lat)
        north = torch.zeros(n, n, dtype=torch.float64)
        for i in range(n):
            lo, hi = max(i - 1, 0), min(i + 1, n - 1)
            north[i, hi] += 1 / ((hi - lo) * step)
            north[i, lo] -= 1 / ((hi - lo) * step)
        self.register_buffer("north", north)
        self.register_buffer("fu", G / (f * RADIUS))
        self.register_buffer("fv", G / (f * RADIUS * torch.cos(lat) * 2 * (2 * math.pi / nlon)))

    def forward(self, z):
        return _Geostrophic.apply(z, self.north, self.fu, self.fv)
