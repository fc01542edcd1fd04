import torch
from torch.autograd.function import once_differentiable


class AngleEnergy(torch.autograd.Function):
    """Harmonic bending energy k/2 (theta - theta0)^2 of each triple (i, j, k) with j in the middle.

    pos (N, 3), triples (A, 3) long, theta0 (A,), force constants k (A,)  ->  (A,)
    """

    @staticmethod
    def forward(ctx, pos, triples, theta0, k):
        i, j, l = triples.unbind(1)
        a, b = pos[i] - pos[j], pos[l] - pos[j]
        na, nb = a.norm(dim=1), b.norm(dim=1)
        cos = ((a * b).sum(1) / (na * nb)).clamp(-1, 1)
        dev = torch.acos(cos) - theta0
        ctx.save_for_backward(pos, triples, dev, cos, k)
        return 0.5 * k * dev ** 2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        pos, triples, dev, cos, k = ctx.saved_tensors
        i, j, l = triples.unbind(1)
        a, b = pos[i] - pos[j], pos[l] - pos[j]
        na, nb = a.norm(dim=1, keepdim=True), b.norm(dim=1, keepdim=True)
        ua, ub = a / na, b / nb
        sin = (1 - cos ** 2).clamp_min(1e-16).sqrt()[:, None]
        gt = (g * k * dev)[:, None]
        fi = gt * (cos[:, None] * ua - ub) / (na * sin)
        fl = gt * (cos[:, None] * ub - ua) / (nb * sin)
        gpos = torch.zeros_like(pos)
        gpos.index_add_(0, i, fi)
        gpos.index_add_(0, l, fl)
        gpos.index_add_(0, j, -(fi + fl))
        return gpos, None, -g * k * dev, 0.5 * g * dev ** 2
