import torch


def _pairs(pos, box):
    n = pos.shape[0]
    i, j = torch.triu_indices(n, n, 1, device=pos.device)
    rij = pos[i] - pos[j]
    if box is not None:
        rij = rij - box * torch.round(rij / box)
    return i, j, rij, (rij * rij).sum(-1)


class _LJ(torch.autograd.Function):
    """Shifted Lennard-Jones energy with a cutoff; backward is made of the forces."""

    @staticmethod
    def forward(ctx, pos, eps, sigma, box, cutoff):
        _, _, _, r2 = _pairs(pos, box)
        inside = (r2 < cutoff ** 2).to(pos.dtype)
        sr6 = (sigma * sigma / r2) ** 3
        src6 = (sigma / cutoff) ** 6
        shape = sr6 * (sr6 - 1) - src6 * (src6 - 1)
        ctx.save_for_backward(pos, eps, sigma)
        ctx.box, ctx.cutoff = box, cutoff
        return 4 * eps * (inside * shape).sum()

    @staticmethod
    def backward(ctx, g):
        pos, eps, sigma = ctx.saved_tensors
        i, j, rij, r2 = _pairs(pos.data, ctx.box)
        inside = (r2 < ctx.cutoff ** 2).to(pos.dtype)
        sr6 = (sigma * sigma / r2) ** 3
        src6 = (sigma / ctx.cutoff) ** 6
        slope = 12 * sr6 * sr6 - 6 * sr6
        pair = -(g * inside * 4 * eps * slope / r2).unsqueeze(-1) * rij
        gpos = torch.zeros_like(pos).index_add(0, i, pair).index_add(0, j, -pair)
        geps = g * 4 * (inside * (sr6 * (sr6 - 1) - src6 * (src6 - 1))).sum()
        gsig = g * 4 * eps / sigma * (inside * (slope - (12 * src6 * src6 - 6 * src6))).sum()
        return gpos, geps, gsig, None, None


def lennard_jones(pos, eps, sigma, box=None, cutoff=2.5):
    """pos (n, 3); eps, sigma scalar tensors; cubic box length or None -> energy"""
    if box is not None and cutoff > box / 2:
        raise ValueError("cutoff beyond half of the box")
    return _LJ.apply(pos, eps, sigma, box, cutoff)
