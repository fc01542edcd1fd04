"""Pinhole camera with learnable focal lengths."""
from typing import Tuple

import torch
import torch.nn as nn
from torch import Tensor


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, focal, center, near):
        ctx.save_for_backward(points, focal)
        ctx.near = near
        z = points[..., 2:].clamp(min=near)
        return focal * points[..., :2] / z + center

    @staticmethod
    def backward(ctx, grad):
        points, focal = ctx.saved_tensors
        xy, depth = points[..., :2], points[..., 2:]
        z = depth.clamp(min=ctx.near)
        g_xy = grad * focal / z
        g_z = -(grad * focal * xy).sum(-1, keepdim=True) / z ** 2
        batch = tuple(range(points.dim() - 1))
        g_focal, g_center = grad * xy / z, grad
        if batch:
            g_focal, g_center = g_focal.sum(batch), g_center.sum(batch)
        return torch.cat([g_xy, g_z], -1), g_focal, g_center, None


class PinholeProjection(nn.Module):
    """Project camera-space points to pixels.

    Args:
        focal: initial focal lengths (fx, fy) in pixels, learned.
        center: principal point (cx, cy), a buffer.
        near: depths below are treated as this depth.

    Shape:
        points (..., 3) -> pixels (..., 2)
    """

    def __init__(self, focal: Tuple[float, float], center: Tuple[float, float], near: float = 0.1):
        super().__init__()
        if near <= 0:
            raise ValueError("near must be positive")
        self.focal = nn.Parameter(torch.tensor(focal))
        self.register_buffer("center", torch.tensor(center))
        self.near = near

    def forward(self, points: Tensor) -> Tensor:
        return _Project.apply(points, self.focal, self.center, self.near)
