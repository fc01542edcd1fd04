import torch

RD_OVER_G = 29.2718


class Hypsometric(torch.autograd.Function):
    """Heights of half levels by hydrostatic integration upwards.

    t (B, K) [K] and q (B, K) [kg/kg] on full levels, top first; p (B, K + 1) half-level pressures, increasing;
    z_surface (B,) -> (B, K + 1)
    """

    @staticmethod
    def forward(ctx, t, q, p, z_surface):
        ctx.save_for_backward(t, q, p)
        thick = RD_OVER_G * t * (1 + 0.608 * q) * torch.log(p[:, 1:] / p[:, :-1])
        above = thick.flip(1).cumsum(1).flip(1) + z_surface[:, None]
        return torch.cat([above, z_surface[:, None]], 1)

    @staticmethod
    def backward(ctx, g):
        t, q, p = ctx.saved_tensors
        ratio = torch.log(p[:, 1:] / p[:, :-1])
        g_thick = RD_OVER_G * g.cumsum(1)[:, 1:]
        gt = g_thick * (1 + 0.608 * q) * ratio
        gq = g_thick * t * 0.608 * ratio
        g_ratio = g_thick * t * (1 + 0.608 * q)
        none = torch.zeros_like(p[:, :1])
        gp = (torch.cat([none, g_ratio], 1) - torch.cat([g_ratio, none], 1)) / p
        return gt, gq, gp, g.sum(1)
