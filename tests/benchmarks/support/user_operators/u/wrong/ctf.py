import math

import torch


class ContrastTransfer(torch.autograd.Function):
    # s2: |s|^2 [1/A^2], az: azimuth of each frequency; defocus_u, defocus_v [A], theta [rad]: 0-dim
    @staticmethod
    def forward(s2, az, defocus_u, defocus_v, theta, lam, cs, amp):
        dz = 0.5 * (defocus_u + defocus_v + (defocus_u - defocus_v) * torch.cos(2 * (az - theta)))
        chi = math.pi * lam * s2 * (dz - 0.5 * lam**2 * cs * s2)
        return -(math.sqrt(1 - amp**2) * chi.sin() + amp * chi.cos())

    @staticmethod
    def setup_context(ctx, inputs, output):
        s2, az, du, dv, theta, ctx.lam, ctx.cs, ctx.amp = inputs
        ctx.save_for_backward(s2, az, du, dv, theta)

    @staticmethod
    def backward(ctx, g):
        s2, az, du, dv, theta = ctx.saved_tensors
        lam, cs, amp = ctx.lam, ctx.cs, ctx.amp
        c2, sn2 = torch.cos(2 * (az - theta)), torch.sin(2 * (az - theta))
        dz = 0.5 * (du + dv + (du - dv) * c2)
        chi = math.pi * lam * s2 * (dz - 0.5 * lam**2 * cs * s2)
        g_chi = -g * (math.sqrt(1 - amp**2) * chi.cos() - amp * chi.sin())
        g_dz = g_chi * math.pi * lam * s2
        g_s2 = g_chi * math.pi * lam * (dz - lam**2 * cs * s2)
        g_du = (0.5 * g_dz * (1 + c2)).sum()
        g_dv = (0.5 * g_dz * (1 - c2)).sum()
        g_theta = (0.5 * g_dz * (du - dv) * sn2).sum()
        g_az = -g_dz * (du - dv) * sn2
        return g_s2, g_az, g_du, g_dv, g_theta, None, None, None
