import torch


class _Torsion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xyz, quads):
        p0, p1, p2, p3 = (xyz[quads[:, k]] for k in range(4))
        f, g, h = p0 - p1, p1 - p2, p3 - p2
        a = torch.cross(f, g, dim=-1)
        b = torch.cross(h, g, dim=-1)
        gn = g.norm(dim=-1)
        sin = (torch.cross(b, a, dim=-1) * g).sum(-1) / gn
        cos = (a * b).sum(-1)
        ctx.save_for_backward(f, g, h, a, b, gn, quads)
        ctx.n_atoms = xyz.shape[0]
        return torch.atan2(sin, cos)

    @staticmethod
    def backward(ctx, grad_phi):
        f, g, h, a, b, gn, quads = ctx.saved_tensors
        ia = (grad_phi / (a * a).sum(-1)).unsqueeze(-1) * a
        ib = (grad_phi / (b * b).sum(-1)).unsqueeze(-1) * b
        fg = ((f * g).sum(-1) / gn).unsqueeze(-1)
        hg = ((h * g).sum(-1) / gn).unsqueeze(-1)
        gn = gn.unsqueeze(-1)
        mid = fg * ia + hg * ib
        d0 = -gn * ia
        d1 = gn * ia + mid
        d2 = -mid - gn * ib
        d3 = gn * ib
        out = f.new_zeros(ctx.n_atoms, 3)
        for k, d in enumerate((d0, d1, d2, d3)):
            out.index_add_(0, quads[:, k], d)
        return out, None


def torsion_angles(xyz, quads, degrees=False):
    # xyz [atoms, 3], quads [n, 4] atom indices (phi, psi, chi ...)
    phi = _Torsion.apply(xyz, quads)
    return torch.rad2deg(phi) if degrees else phi
