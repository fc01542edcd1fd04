import torch


class _Truss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xy, ea, disp, ends):
        ctx.save_for_backward(xy, ea, disp, ends)
        i, j = ends.unbind(1)
        d = xy[j] - xy[i]
        length = d.norm(dim=1)
        axial = ea * (d * (disp[j] - disp[i])).sum(1) / length**2
        f = (axial / length)[:, None] * d
        return torch.zeros_like(disp).index_add(0, j, f).index_add(0, i, -f)

    @staticmethod
    def backward(ctx, g):
        xy, ea, disp, ends = ctx.saved_tensors
        i, j = ends.unbind(1)
        d, du, dg = xy[j] - xy[i], disp[j] - disp[i], g[j] - g[i]
        l2 = (d * d).sum(1)
        k = ea / l2**1.5
        pu, pg = (d * du).sum(1), (d * dg).sum(1)
        g_ea = pu * pg / l2**1.5
        g_d = k[:, None] * (du * pg[:, None] + dg * pu[:, None]) - (3 * k * pu * pg / l2)[:, None] * d
        g_u = (k * pg)[:, None] * d
        zero = torch.zeros(xy.shape, dtype=xy.dtype, device=xy.device)
        return (zero.index_add(0, j, g_d).index_add(0, i, -g_d), g_ea,
                zero.index_add(0, j, g_u).index_add(0, i, -g_u), None)


def truss_forces(xy, ea, disp, ends):
    """Nodal forces of a plane truss in small displacements.

    xy, disp (nodes, 2), ea (bars,) axial stiffness [kN], ends (bars, 2) long node numbers
    """
    return _Truss.apply(xy, ea, disp, ends)
