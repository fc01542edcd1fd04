import torch
from torch.autograd import Function


class _LoopOdd(Function):
    @staticmethod
    def forward(ctx, verts, edges, opp):
        ctx.save_for_backward(edges, opp)
        ctx.n = verts.shape
        inner = (opp >= 0).all(1, keepdim=True)
        ends = verts[edges].sum(1)
        sides = verts[opp.clamp(min=0)].sum(1)
        return torch.where(inner, 0.375 * ends + 0.125 * sides, 0.5 * ends)

    @staticmethod
    def backward(ctx, g):
        edges, opp = ctx.saved_tensors
        inner = (opp >= 0).all(1, keepdim=True)
        g_end = torch.where(inner, 0.375 * g, 0.5 * g)
        g_side = torch.where(inner, 0.125 * g, torch.zeros_like(g))
        gv = torch.zeros(ctx.n, dtype=g.dtype, device=g.device)
        for k in range(2):
            gv = gv.index_add(0, edges[:, k], g_end)
            gv = gv.index_add(0, opp[:, k].clamp(min=0), g_side)
        return gv, None, None


def loop_odd_vertices(verts, edges, opp):
    """New edge points of Loop subdivision.

    Args:
        verts: (V, 3)
        edges: (E, 2) vertex indices
        opp: (E, 2) the vertices across the edge, -1 where there is no face (boundary)
    Returns:
        (E, 3)
    """
    return _LoopOdd.apply(verts, edges, opp)
