import torch
from torch.autograd.function import once_differentiable


def bspline(x, inv_dx):
    base = torch.floor(x * inv_dx - 0.5)
    fx = x * inv_dx - base
    w = torch.stack([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2])
    dw = torch.stack([fx - 1.5, -2 * (fx - 1), fx - 0.5])
    idx = base.long() + torch.arange(3, device=x.device)[:, None]
    return idx, w, dw


class ParticleToGrid(torch.autograd.Function):
    """MLS-MPM transfer on a line of n_grid nodes with spacing dx; x in [dx, (n_grid - 2) dx].

    x, mass, vel (P,) -> grid mass (n_grid,), grid momentum (n_grid,)
    """

    @staticmethod
    def forward(ctx, x, mass, vel, n_grid, dx):
        idx, w, dw = bspline(x, 1 / dx)
        gm = x.new_zeros(n_grid).index_add(0, idx.flatten(), (w * mass).flatten())
        gp = x.new_zeros(n_grid).index_add(0, idx.flatten(), (w * mass * vel).flatten())
        ctx.save_for_backward(idx, w, mass, vel)
        ParticleToGrid.dw = dw
        ctx.inv_dx = 1 / dx
        return gm, gp

    @staticmethod
    @once_differentiable
    def backward(ctx, d_gm, d_gp):
        idx, w, mass, vel = ctx.saved_tensors
        dw = ParticleToGrid.dw
        gm, gp = d_gm[idx], d_gp[idx]
        both = gm + vel * gp
        d_x = (dw * both).sum(0) * mass * ctx.inv_dx
        d_mass = (w * both).sum(0)
        d_vel = (w * gp).sum(0) * mass
        return d_x, d_mass, d_vel, None, None
