import torch
from torch.autograd.function import once_differentiable


class PinholeProject(torch.autograd.Function):
    """Project camera-space points.

    points: (N, 3)
    intr: (4,) fx, fy, cx, cy
    dist: (2,) k1, k2 radial distortion, or None
    """

    @staticmethod
    def forward(ctx, points, intr, dist=None):
        xy = points[:, :2] / points[:, 2:]
        d = torch.ones_like(points[:, :1])
        if dist is not None:
            r2 = xy.square().sum(-1, keepdim=True)
            d = 1 + dist[0] * r2 + dist[1] * r2 * r2
        ctx.save_for_backward(points, intr, dist)
        return intr[:2] * xy * d + intr[2:]

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        points, intr, dist = ctx.saved_tensors
        z = points[:, 2:]
        xy = points[:, :2] / z
        r2 = xy.square().sum(-1, keepdim=True)
        d, slope = torch.ones_like(r2), torch.zeros_like(r2)
        if dist is not None:
            d = 1 + dist[0] * r2 + dist[1] * r2 * r2
            slope = dist[0] + 2 * dist[1] * r2
        g_intr = torch.cat([(g * xy * d).sum(0), g.sum(0)])
        gp = g * intr[:2]
        gd = (gp * xy).sum(-1, keepdim=True)
        g_dist = None
        if dist is not None and ctx.needs_input_grad[2]:
            g_dist = torch.stack([(gd * r2).sum(), (gd * r2 * r2).sum()])
        gxy = gp * d + 2 * gd * slope * xy
        g_points = torch.cat([gxy, -(gxy * xy).sum(-1, keepdim=True)], -1) / z
        return g_points, g_intr, None
