"""Forward kinematics of a serial arm in the plane, with calibratable lengths and encoder offsets."""
import torch
from torch import nn


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, joints, lengths, offsets):
        ctx.save_for_backward(joints, lengths, offsets)
        heading = torch.cumsum(joints + offsets, -1)
        tip = torch.stack([(lengths * heading.cos()).sum(-1), (lengths * heading.sin()).sum(-1)], -1)
        return tip, heading[..., -1].clone()

    @staticmethod
    def backward(ctx, g_tip, g_heading):
        joints, lengths, offsets = ctx.saved_tensors
        heading = torch.cumsum(joints + offsets, -1)
        cos, sin = heading.cos(), heading.sin()
        gx, gy = g_tip[..., :1], g_tip[..., 1:]
        d_lengths = (gx * cos + gy * sin).reshape(-1, lengths.numel()).sum(0)
        d_heading = lengths * (gy * cos - gx * sin)
        # a joint turns all the links after it
        d_joints = d_heading.cumsum(-1) + g_heading.unsqueeze(-1)
        return d_joints, d_lengths, d_joints.reshape(-1, lengths.numel()).sum(0)


class PlanarArm(nn.Module):
    """joints (..., L) -> tip (..., 2), heading of the last link (...)"""

    def __init__(self, lengths):
        super().__init__()
        self.lengths = nn.Parameter(torch.as_tensor(lengths))
        self.offsets = nn.Parameter(torch.zeros(len(lengths)))

    def forward(self, joints):
        return _Forward.apply(joints, self.lengths, self.offsets)
