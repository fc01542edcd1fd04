import torch


class MenegottoPinto(torch.autograd.Function):
    """Monotonic steel stress, strain (N,), fy, e0 and hardening b scalars, R curvature (> 1)."""

    @staticmethod
    def forward(ctx, strain, fy, e0, b, R):
        ctx.save_for_backward(strain.bfloat16(), fy, e0, b)
        ctx.R = R
        e = strain * e0 / fy
        return fy * (b * e + (1 - b) * e * (1 + e.abs() ** R) ** (-1 / R))

    @staticmethod
    def backward(ctx, g):
        strain, fy, e0, b = ctx.saved_tensors
        R, strain = ctx.R, strain.to(g.dtype)
        e = strain * e0 / fy
        base = 1 + e.abs() ** R
        curve = e * base ** (-1 / R)
        s = b * e + (1 - b) * curve
        tangent = b + (1 - b) * base ** (-1 / R - 1)
        g_strain = g * tangent * e0
        g_fy = (g * (s - e * tangent)).sum()
        g_e0 = (g * tangent * strain).sum()
        g_b = (g * fy * (e - curve)).sum()
        return g_strain, g_fy, g_e0, g_b, None
