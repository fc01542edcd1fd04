import math

import torch


class BearingRange(torch.autograd.Function):
    """Landmark measurement model for 2D SLAM.

    Args:
        pose: (B, 3) x, y, heading
        landmarks: (M, 2), map positions, optimised jointly with the poses
    Returns:
        (B, M, 2) range and bearing, the bearing wrapped to [-pi, pi)
    """

    @staticmethod
    def forward(ctx, pose, landmarks):
        ctx.save_for_backward(pose, landmarks)
        d = landmarks[None] - pose[:, None, :2]
        rng = d.norm(dim=-1)
        ang = torch.atan2(d[..., 1], d[..., 0]) - pose[:, None, 2]
        ang = torch.remainder(ang + math.pi, 2 * math.pi) - math.pi
        return torch.stack([rng, ang], -1)

    @staticmethod
    def backward(ctx, grad_out):
        pose, landmarks = ctx.saved_tensors
        d = landmarks[None] - pose[:, None, :2]
        r2 = (d * d).sum(-1)
        gr, gb = grad_out[..., 0] / r2.sqrt(), grad_out[..., 1] / r2
        gx = gr * d[..., 0] - gb * d[..., 1]
        gy = gr * d[..., 1] + gb * d[..., 0]
        gd = torch.stack([gx, gy], -1)
        gpose = torch.cat([-gd.sum(1), -grad_out[..., 1].sum(1, keepdim=True)], -1)
        return gpose, None
