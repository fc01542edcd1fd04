"""Logarithm of rotations for the pose-graph optimiser."""
import torch
from torch.autograd.function import once_differentiable

SMALL = 1e-3


def _scale(n, w):
    """2 atan(n / w) / n, and its derivative by n over n; series near n = 0."""
    small = n < SMALL
    safe = torch.where(small, torch.ones_like(n), n)
    exact = 2 * torch.atan2(safe, w) / safe
    k = torch.where(small, 2 / w - 2 * n**2 / (3 * w**3), exact)
    slope = torch.where(small, -4 / (3 * w**3), (2 * w / (safe**2 + w**2) - exact) / safe**2)
    return k, slope


class QuatLog(torch.autograd.Function):
    """Rotation vector (N, 3) of quaternions (N, 4), scalar first; q and -q give the same (short) rotation."""

    @staticmethod
    def forward(ctx, q):
        s = torch.where(q[:, :1] < 0, -1.0, 1.0).to(q.dtype)
        w, v = s * q[:, :1], s * q[:, 1:]
        ctx.save_for_backward(q, s)
        return _scale(v.norm(dim=1, keepdim=True), w)[0] * v

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, s = ctx.saved_tensors
        w = s * q[:, :1]
        v = q[:, 1:]
        v *= s
        n = v.norm(dim=1, keepdim=True)
        k, slope = _scale(n, w)
        along = (grad * v).sum(1, keepdim=True)
        d_v = k * grad + along * slope * v
        d_w = -2 * along / (n**2 + w**2)
        return s * torch.cat([d_w, d_v], 1)
