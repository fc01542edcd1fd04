import torch


class WarpPoints(torch.autograd.Function):
    """points (B, N, 2) through homographies (B, 3, 3)"""

    @staticmethod
    def forward(ctx, points, H):
        if points.is_complex() or H.is_complex():
            raise TypeError("complex inputs are not supported")
        q = points @ H[:, :, :2].transpose(1, 2) + H[:, None, :, 2]
        out = q[..., :2] / q[..., 2:]
        ctx.save_for_backward(points, H)
        return out

    @staticmethod
    def backward(ctx, g):
        points, H = ctx.saved_tensors
        q = points @ H[:, :, :2].transpose(1, 2) + H[:, None, :, 2]
        z = q[..., 2:]
        g_xy = g / z
        g_z = -(g_xy * q[..., :2]).sum(-1, keepdim=True) / z
        g_q = torch.cat([g_xy, g_z], -1)
        g_points = g_q @ H[:, :, :2]
        hom = torch.cat([points, torch.ones_like(z)], -1)
        g_H = hom.transpose(1, 2) @ g_q
        return g_points, g_H
