import torch
from torch.autograd.function import once_differentiable


class SpringForces(torch.autograd.Function):
    """Forces of a spring network on its nodes.

    x: (N, D) positions; edges: (E, 2); rest: (E,); k: (E,)
    mode: "both" or "tension" (slack springs, i.e. ropes, do not push)
    """

    @staticmethod
    def geometry(x, edges):
        d = x[edges[:, 1]] - x[edges[:, 0]]
        l = d.norm(dim=1)
        return l, d / l[:, None]

    @staticmethod
    def forward(ctx, x, edges, rest, k, mode="both"):
        assert mode in ("both", "tension"), mode
        l, n = SpringForces.geometry(x, edges)
        stretch = l - rest
        if mode == "tension":
            stretch = stretch.clamp(min=0)
        f = (k * stretch)[:, None] * n
        ctx.save_for_backward(x, edges, rest, k)
        ctx.mode = mode
        return torch.zeros_like(x).index_add(0, edges[:, 0], f).index_add(0, edges[:, 1], -f)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, edges, rest, k = ctx.saved_tensors
        l, n = SpringForces.geometry(x, edges)
        stretch = l - rest
        live = torch.ones_like(l)
        if ctx.mode == "tension":
            live = (stretch > 0).to(l)
        gf = g[edges[:, 0]] - g[edges[:, 1]]
        along = (gf * n).sum(1)
        axial = (live * k * along)[:, None] * n
        turning = (live * k * stretch / l)[:, None] * (gf - along[:, None] * n)
        gd = axial + turning
        gx = torch.zeros_like(x).index_add(0, edges[:, 1], gd).index_add(0, edges[:, 0], -gd)
        return gx, None, -live * k * along, live * stretch * along, None
