import torch


class _LJ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, i, j, eps, sigma, cutoff):
        ctx.save_for_backward(pos, i, j)
        ctx.opts = eps, sigma, cutoff
        r2 = (pos[i] - pos[j]).square().sum(-1)
        s6 = (sigma * sigma / r2) ** 3
        e = 4 * eps * (s6 * s6 - s6)
        return e if cutoff is None else e * (r2 < cutoff * cutoff)

    @staticmethod
    def backward(ctx, g):
        pos, i, j = ctx.saved_tensors
        eps, sigma, cutoff = ctx.opts
        d = pos[i] - pos[j]
        r2 = d.square().sum(-1)
        s6 = (sigma * sigma / r2) ** 3
        pull = g * 8 * eps * (3 * s6 - 6 * s6 * s6) / r2
        f = pull[:, None] * d
        return torch.zeros_like(pos).index_add(0, i, f).index_add(0, j, -f), None, None, None, None, None


def lj_pairs(pos, pairs, eps=1.0, sigma=1.0, cutoff=None):
    """Lennard-Jones energy of every pair

    pos: (N, 3), pairs: (2, P); beyond cutoff the energy is zero
    """
    return _LJ.apply(pos, pairs[0], pairs[1], eps, sigma, cutoff)
