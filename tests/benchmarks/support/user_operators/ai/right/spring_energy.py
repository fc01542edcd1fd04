import torch
from torch.autograd.function import once_differentiable


def _vectors(pos, edges, box):
    d = pos[edges[:, 1]] - pos[edges[:, 0]]
    if box is not None:
        d = d - box * torch.round(d / box)
    return d


class SpringEnergy(torch.autograd.Function):
    """0.5 k (|r_j - r_i| - L)^2 per edge, with minimum image in an optional box.

    pos (N, 3), rest (E,), k (E,), edges (E, 2), box (3,) data or None. Coincident nodes are
    allowed and exert no force.
    """

    @staticmethod
    def forward(ctx, pos, rest, k, edges, box=None):
        dist = _vectors(pos, edges, box).norm(dim=-1)
        ctx.save_for_backward(pos, rest, k, edges, box)
        return 0.5 * k * (dist - rest) ** 2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        pos, rest, k, edges, box = ctx.saved_tensors
        vec = _vectors(pos, edges, box)
        dist = vec.norm(dim=-1)
        stretch = dist - rest
        unit = vec / dist.clamp(min=1e-12)[:, None]
        f = (g * k * stretch)[:, None] * unit
        g_pos = torch.zeros_like(pos)
        g_pos.index_add_(0, edges[:, 1], f)
        g_pos.index_add_(0, edges[:, 0], -f)
        return g_pos, -g * k * stretch, 0.5 * g * stretch ** 2, None, None
