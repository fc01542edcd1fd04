import torch
from torch import nn


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, focal, center):
        ctx.save_for_backward(points, focal)
        xy, z = points[..., :2], points[..., 2:]
        depth = z.squeeze(-1).clone()
        return focal * xy / z + center, depth

    @staticmethod
    def backward(ctx, grad_uv, grad_depth):
        points, focal = ctx.saved_tensors
        xy, z = points[..., :2], points[..., 2:]
        grad_xy = grad_uv * focal / z
        grad_z = -(grad_xy * xy / z).sum(-1) + grad_depth
        grad_points = torch.cat([grad_xy, grad_z.unsqueeze(-1)], dim=-1)
        grad_focal = (grad_uv * xy / z).reshape(-1, 2).sum(0)
        grad_center = grad_uv.reshape(-1, 2).sum(0)
        return grad_points, grad_focal, grad_center


class PinholeCamera(nn.Module):
    """Pinhole projection with learnable intrinsics.

    Input ``(..., 3)`` camera-frame points with non-zero depth; returns pixel
    coordinates ``(..., 2)`` and the depth ``(...)``.
    """

    def __init__(self, fx, fy, cx=0.0, cy=0.0):
        super().__init__()
        self.focal = nn.Parameter(torch.tensor([float(fx), float(fy)]))
        self.center = nn.Parameter(torch.tensor([float(cx), float(cy)]))

    def forward(self, points):
        return _Project.apply(points, self.focal, self.center)
