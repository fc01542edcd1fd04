import torch


class ReactionField(torch.autograd.Function):
    """Coulomb energy with reaction field (eps_rf = inf) over a pair list in an orthorhombic box.

    pos (N,3), charge (N,), box (3,), pairs (2,E); the energy is zero at cutoff.
    """

    ONE_4PI_EPS0 = 138.935456

    @staticmethod
    def forward(ctx, pos, charge, box, pairs, cutoff):
        i, j = pairs
        d = pos[i] - pos[j]
        d = d - box * torch.round(d / box)
        r = d.norm(dim=-1)
        krf, crf = 0.5 / cutoff ** 3, 1.5 / cutoff
        pair = torch.where(r < cutoff, 1 / r + krf * r ** 2 - crf, torch.zeros_like(r))
        ctx.save_for_backward(pos, charge, box, pairs)
        ctx.cutoff = cutoff
        return ReactionField.ONE_4PI_EPS0 * (charge[i] * charge[j] * pair).sum()

    @staticmethod
    def backward(ctx, grad):
        pos, charge, box, pairs = ctx.saved_tensors
        i, j = pairs
        cutoff = ctx.cutoff
        d = pos[i] - pos[j]
        d = d - box * torch.round(d / box)
        r = d.norm(dim=-1)
        inside = r < cutoff
        krf, crf = 0.5 / cutoff ** 3, 1.5 / cutoff
        ke = ReactionField.ONE_4PI_EPS0 * grad * inside
        pair = ke * (1 / r + krf * r ** 2 - crf)
        f = (ke * charge[i] * charge[j] * (2 * krf - 1 / r ** 3))[:, None] * d
        g_pos = torch.zeros_like(pos).index_add(0, i, f).index_add(0, j, -f)
        g_q = torch.zeros_like(charge).index_add(0, i, pair * charge[j]).index_add(0, j, pair * charge[i])
        return g_pos, g_q, None, None, None
