import torch
import torch.nn as nn


def _suffix(v):
    return v.flip(1).cumsum(1).flip(1)


class ArmFK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, lengths, arm):
        ctx.save_for_backward(q, lengths)
        phi = q.cumsum(1)
        dirs = torch.stack([phi.cos(), phi.sin()], -1)
        return (lengths[:, None] * dirs).cumsum(1) + q.new_tensor(arm.base)

    @staticmethod
    def backward(ctx, g):
        q, lengths = ctx.saved_tensors
        phi = q.cumsum(1)
        dirs = torch.stack([phi.cos(), phi.sin()], -1)
        G = _suffix(g)
        gl = (G * dirs).sum((0, 2))
        gphi = lengths * (G[..., 1] * dirs[..., 0] - G[..., 0] * dirs[..., 1])
        return _suffix(gphi), gl, None


class PlanarArm(nn.Module):
    """Serial arm in the plane: joint angles (B, n) -> positions of all link ends (B, n, 2)"""

    def __init__(self, n_links, base=(0.0, 0.0)):
        super().__init__()
        self.base = base
        self.lengths = nn.Parameter(torch.ones(n_links))

    def forward(self, q):
        return ArmFK.apply(q, self.lengths, self)
