import math

import torch
from torch.autograd.function import once_differentiable


class RadialVelocity(torch.autograd.Function):
    """Radial velocity of one planet on a Keplerian orbit.

    Parameters
    ----------
    t : Tensor (n,)
        Times.
    period, t_peri, ecc, omega, semi_amp, offset : Tensor, 0-dim
        Period (> 0), time of periastron, eccentricity in [0, 0.95), argument of periastron
        in radians, semi-amplitude and systemic velocity.

    Returns
    -------
    Tensor (n,)
    """

    @staticmethod
    def forward(ctx, t, period, t_peri, ecc, omega, semi_amp, offset):
        mean = torch.remainder(2 * math.pi * (t - t_peri) / period + math.pi, 2 * math.pi) - math.pi
        anomaly = mean + 0.85 * ecc * mean.sign()
        for _ in range(50):
            anomaly = anomaly - (anomaly - ecc * anomaly.sin() - mean) / (1 - ecc * anomaly.cos())
        root = torch.sqrt(1 - ecc**2)
        nu = torch.atan2(root * anomaly.sin(), anomaly.cos() - ecc)
        ctx.save_for_backward(t, period, t_peri, ecc, omega, semi_amp, nu)
        return offset + semi_amp * (torch.cos(nu + omega) + ecc * torch.cos(omega))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        t, period, t_peri, ecc, omega, semi_amp, nu = ctx.saved_tensors
        left = 1 - ecc**2
        g_amp = (grad * (torch.cos(nu + omega) + ecc * torch.cos(omega))).sum()
        g_nu = -grad * semi_amp * torch.sin(nu + omega)
        g_omega = (g_nu - grad * semi_amp * ecc * torch.sin(omega)).sum()
        g_ecc = (g_nu * torch.sin(nu) * (2 + ecc * torch.cos(nu)) / left + grad * semi_amp * torch.cos(omega)).sum()
        g_mean = g_nu * (1 + ecc * torch.cos(nu)) ** 2 / left**1.5
        g_t = 2 * math.pi / period * g_mean
        g_period = -(g_t * (t - t_peri)).sum() / period
        return g_t, g_period, None, g_ecc, g_omega, g_amp, grad.sum()
