import torch


class LJEnergy(torch.autograd.Function):
    """Sum over a half neighbour list (i, j) of the 12-6 potential, cut off and shifted at rc."""

    @staticmethod
    def forward(ctx, pos, i, j, eps, sigma, rc):
        ctx.save_for_backward(pos, i, j)
        ctx.par = eps, sigma, rc
        r2 = (pos[i] - pos[j]).pow(2).sum(-1)
        s6 = (sigma**2 / r2) ** 3
        c6 = (sigma / rc) ** 6
        e = 4 * eps * (s6 * s6 - s6 - c6 * c6 + c6)
        return (e * (r2 < rc * rc)).sum()

    @staticmethod
    def backward(ctx, g):
        pos, i, j = ctx.saved_tensors
        eps, sigma, rc = ctx.par
        d = pos[i] - pos[j]
        r2 = d.pow(2).sum(-1, keepdim=True)
        s6 = (sigma**2 / r2) ** 3
        f = g * 24 * eps * (s6 - 2 * s6 * s6) / r2 * d * (r2 < rc * rc)
        gpos = torch.zeros_like(pos)
        gpos = gpos.index_add(0, i, f).index_add(0, j, -f)
        return gpos, None, None, None, None, None
