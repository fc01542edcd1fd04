import torch


class LennardJonesEnergy(torch.autograd.Function):
    """Truncated and shifted 12-6 energy over a pair list under the minimum image convention.

    positions: (N, 3)
    box: (3,) edge lengths of an orthorhombic cell
    sigma, epsilon: (P,) pair parameters
    pairs: (P, 2) int64
    """

    @staticmethod
    def forward(ctx, positions, box, sigma, epsilon, pairs, cutoff):
        i, j = pairs.unbind(1)
        d = positions[i] - positions[j]
        d = d - box * torch.round(d / box)
        r2 = (d * d).sum(1)
        s6 = (sigma ** 2 / r2) ** 3
        c6 = (sigma / cutoff) ** 6
        e = 4 * epsilon * ((s6 ** 2 - s6) - (c6 ** 2 - c6))
        ctx.save_for_backward(positions, box, sigma, epsilon, pairs)
        ctx.cutoff = cutoff
        return torch.where(r2 < cutoff ** 2, e, torch.zeros_like(e)).sum()

    @staticmethod
    def backward(ctx, grad_e):
        positions, box, sigma, epsilon, pairs = ctx.saved_tensors
        i, j = pairs.unbind(1)
        d = positions[i] - positions[j]
        shift = torch.round(d / box)
        d = d - box * shift
        r2 = (d * d).sum(1)
        g = grad_e * (r2 < ctx.cutoff ** 2).to(d.dtype)
        s6 = (sigma ** 2 / r2) ** 3
        c6 = (sigma / ctx.cutoff) ** 6
        de_dr2 = -12 * epsilon * (2 * s6 ** 2 - s6) / r2
        pair_force = (2 * grad_e * de_dr2)[:, None] * d
        g_pos = torch.zeros_like(positions).index_add(0, i, pair_force).index_add(0, j, -pair_force)
        g_box = -(pair_force * shift).sum(0)
        g_sigma = g * 24 * epsilon * ((2 * s6 ** 2 - s6) - (2 * c6 ** 2 - c6)) / sigma
        g_eps = g * 4 * ((s6 ** 2 - s6) - (c6 ** 2 - c6))
        return g_pos, g_box, g_sigma, g_eps, None, None
