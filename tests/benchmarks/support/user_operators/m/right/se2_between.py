import math

import torch


class SE2Between(torch.autograd.Function):
    """Relative planar pose of b in the frame of a.

    pose_a, pose_b: (N, 3) as (x, y, heading). Returns (N, 3); the heading
    difference is wrapped to [-pi, pi).
    """

    @staticmethod
    def forward(ctx, pose_a, pose_b):
        ctx.save_for_backward(pose_a, pose_b)
        d = pose_b - pose_a
        c, s = pose_a[:, 2].cos(), pose_a[:, 2].sin()
        x = c * d[:, 0] + s * d[:, 1]
        y = -s * d[:, 0] + c * d[:, 1]
        heading = torch.remainder(d[:, 2] + math.pi, 2 * math.pi) - math.pi
        return torch.stack([x, y, heading], dim=1)

    @staticmethod
    def backward(ctx, grad):
        pose_a, pose_b = ctx.saved_tensors
        d = pose_b - pose_a
        c, s = pose_a[:, 2].cos(), pose_a[:, 2].sin()
        gx, gy, gh = grad.unbind(1)
        gdx = c * gx - s * gy
        gdy = s * gx + c * gy
        x = c * d[:, 0] + s * d[:, 1]
        y = -s * d[:, 0] + c * d[:, 1]
        g_heading_a = gx * y - gy * x - gh
        grad_b = torch.stack([gdx, gdy, gh], dim=1)
        grad_a = torch.stack([-gdx, -gdy, g_heading_a], dim=1)
        return grad_a, grad_b
