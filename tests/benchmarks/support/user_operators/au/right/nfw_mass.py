import math

import torch
from torch.autograd import Function


class _NFWMass(Function):
    @staticmethod
    def forward(ctx, r, rho_s, r_s):
        ctx.save_for_backward(r, rho_s, r_s)
        x = r / r_s
        return 4 * math.pi * rho_s * r_s**3 * (torch.log1p(x) - x / (1 + x))

    @staticmethod
    def backward(ctx, g):
        r, rho_s, r_s = ctx.saved_tensors
        x = r / r_s
        m = torch.log1p(x) - x / (1 + x)
        dm = x / (1 + x) ** 2
        g = 4 * math.pi * g
        d_r = g * rho_s * r_s**2 * dm
        d_rho = g * r_s**3 * m
        d_rs = g * rho_s * r_s**2 * (3 * m - x * dm)
        return d_r.sum_to_size(r.shape), d_rho.sum_to_size(rho_s.shape), d_rs.sum_to_size(r_s.shape)


def nfw_enclosed_mass(r, rho_s, r_s):
    """Mass of an NFW halo inside radius r.

    r [kpc] > 0, rho_s [Msun/kpc^3], r_s [kpc]; the three broadcast.
    """
    return _NFWMass.apply(r, rho_s, r_s)
