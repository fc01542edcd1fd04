import math

import torch


def _perp(v):
    return torch.stack([-v[..., 1], v[..., 0]], -1) / v.pow(2).sum(-1, keepdim=True)


class DoubleLayer2D(torch.autograd.Function):
    """Double-layer potential of a polyline: sum of density times subtended angle over 2 pi.

    points (m, 2), off the line; vertices (n, 2), no two successive ones equal; density (n,) if closed,
    else (n - 1,). With density one and a closed line it is the winding number.
    """

    @staticmethod
    def _rays(points, vertices, closed):
        ends = torch.roll(vertices, -1, 0) if closed else vertices[1:]
        starts = vertices if closed else vertices[:-1]
        return starts[None] - points[:, None], ends[None] - points[:, None]

    @staticmethod
    def forward(ctx, points, vertices, density, closed=True):
        ctx.save_for_backward(points, vertices, density)
        ctx.closed = closed
        a, b = DoubleLayer2D._rays(points, vertices, closed)
        cross = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
        return torch.atan2(cross, (a * b).sum(-1)) @ density / (2 * math.pi)

    @staticmethod
    def backward(ctx, grad):
        points, vertices, density = ctx.saved_tensors
        a, b = DoubleLayer2D._rays(points, vertices, ctx.closed)
        angle = torch.atan2(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0], (a * b).sum(-1))
        grad = grad / (2 * math.pi)
        w = (grad[:, None] * density)[..., None]
        ga, gb = -w * _perp(a), w * _perp(b)
        g_points = -(ga + gb).sum(1)
        if ctx.closed:
            g_vertices = ga.sum(0) + torch.roll(gb.sum(0), -1, 0)
        else:
            g_vertices = torch.cat([ga.sum(0), ga.new_zeros(1, 2)]) + torch.cat([gb.new_zeros(1, 2), gb.sum(0)])
        return g_points, g_vertices, grad @ angle, None
