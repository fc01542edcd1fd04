import torch
import torch.nn as nn


def _rev_cumsum(x, dim):
    return x.flip(dim).cumsum(dim).flip(dim)


class _PlanarFK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, angles, lengths):
        ctx.save_for_backward(angles, lengths)
        heading = angles.cumsum(1)
        steps = torch.stack([lengths * heading.cos(), lengths * heading.sin()], dim=-1)
        return steps.cumsum(1)

    @staticmethod
    def backward(ctx, grad_joints):
        angles, lengths = ctx.saved_tensors
        heading = angles.cumsum(1)
        cos, sin = heading.cos(), heading.sin()
        s = _rev_cumsum(grad_joints, 1)
        grad_lengths = (s[..., 0] * cos + s[..., 1] * sin).sum(0)
        grad_heading = lengths * (s[..., 1] * cos - s[..., 0] * sin)
        return grad_heading.cumsum(1), grad_lengths


class PlanarArm(nn.Module):
    """Forward kinematics of a planar serial arm with learnable link lengths.

    angles (B, J), relative joint angles -> joint positions (B, J, 2).
    """

    def __init__(self, link_lengths):
        super().__init__()
        self.lengths = nn.Parameter(torch.as_tensor(link_lengths, dtype=torch.get_default_dtype()))

    def forward(self, angles):
        return _PlanarFK.apply(angles, self.lengths)
