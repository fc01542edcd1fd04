import torch
from torch.autograd import Function


def _displacement(pos, pairs, box):
    vec = pos[pairs[0]] - pos[pairs[1]]
    if box is not None:
        vec = vec - box * torch.round(vec.detach() / box)
    return vec


class LennardJones(Function):
    """Total Lennard-Jones energy of the listed pairs.

    pos: (N, 3); pairs: (2, P) int64; box: (3,) edge lengths of an orthorhombic cell or None,
    in which case no periodic images are used. Pairs beyond ``cutoff`` are dropped (no shift).
    """

    @staticmethod
    def forward(ctx, pos, pairs, box=None, epsilon=1.0, sigma=1.0, cutoff=None):
        if box is not None and ctx.needs_input_grad[2]:
            raise NotImplementedError("no gradient with respect to the cell")
        ctx.save_for_backward(pos, pairs, box)
        ctx.par = (epsilon, sigma, cutoff)
        r2 = _displacement(pos, pairs, box).square().sum(-1)
        s6 = (sigma * sigma / r2).pow(3)
        e = 4 * epsilon * (s6 * s6 - s6)
        if cutoff is not None:
            e = e * (r2 < cutoff * cutoff)
        return e.sum()

    @staticmethod
    def backward(ctx, grad):
        pos, pairs, box = ctx.saved_tensors
        epsilon, sigma, cutoff = ctx.par
        vec = _displacement(pos, pairs, box)
        r2 = vec.square().sum(-1)
        s6 = (sigma * sigma / r2).pow(3)
        slope = -12 * epsilon * (2 * s6 * s6 - s6) / r2
        if cutoff is not None:
            slope = slope * (r2 < cutoff * cutoff)
        f = grad * 2 * slope.unsqueeze(-1) * vec
        return torch.zeros_like(pos).index_add(0, pairs[0], f).index_add(0, pairs[1], -f), None, None, None, None, None
