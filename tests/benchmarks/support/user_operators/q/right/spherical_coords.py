import torch


class ToSpherical(torch.autograd.Function):
    """Cartesian (..., 3) -> radius, polar angle from +z, azimuth in (-pi, pi]; three outputs."""

    @staticmethod
    def forward(ctx, xyz):
        x, y, z = xyz.unbind(-1)
        rho = torch.hypot(x, y)
        ctx.save_for_backward(xyz)
        return torch.hypot(rho, z), torch.atan2(rho, z), torch.atan2(y, x)

    @staticmethod
    def backward(ctx, g_r, g_theta, g_phi):
        (xyz,) = ctx.saved_tensors
        x, y, z = xyz.unbind(-1)
        rho2 = x * x + y * y
        r2 = rho2 + z * z
        rho, r = rho2.sqrt(), r2.sqrt()
        radial = g_r / r + g_theta * z / (rho * r2)
        gx = x * radial - g_phi * y / rho2
        gy = y * radial + g_phi * x / rho2
        gz = g_r * z / r - g_theta * rho / r2
        return torch.stack([gx, gy, gz], -1)
