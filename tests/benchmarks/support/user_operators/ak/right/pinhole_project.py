import torch


class PinholeProject(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, focal, center, near=0.1):
        ctx.save_for_backward(points, focal)
        ctx.near = near
        z = points[:, 2:].clamp(min=near)
        return focal * points[:, :2] / z + center

    @staticmethod
    def backward(ctx, g):
        points, focal = ctx.saved_tensors
        xy, z = points[:, :2], points[:, 2:].clamp(min=ctx.near)
        g_xy = g * focal / z
        g_z = -(g_xy * xy).sum(-1, keepdim=True) / z
        g_z = g_z * (points[:, 2:] >= ctx.near)
        return torch.cat([g_xy, g_z], -1), (g * xy / z).sum(0), g.sum(0), None
