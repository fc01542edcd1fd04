"""Exponential map of SO(3)."""
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def hat(w: Tensor) -> Tensor:
    """(..., 3) -> skew-symmetric (..., 3, 3)"""
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(w.shape[:-1] + (3, 3))


def _coefficients(w: Tensor):
    t2 = (w * w).sum(-1)
    small = t2 < 1e-4
    s2 = torch.where(small, torch.ones_like(t2), t2)
    t = s2.sqrt()
    a = torch.where(small, 1 - t2 / 6 + t2 ** 2 / 120, t.sin() / t)
    b = torch.where(small, 0.5 - t2 / 24 + t2 ** 2 / 720, (1 - t.cos()) / s2)
    da = torch.where(small, -1 / 3 + t2 / 30, (t * t.cos() - t.sin()) / (s2 * t))
    db = torch.where(small, -1 / 12 + t2 / 180, (t * t.sin() - 2 * (1 - t.cos())) / s2 ** 2)
    return tuple(c[..., None, None] for c in (a, b)) + (da, db)


class SO3Exp(torch.autograd.Function):
    """Rodrigues' formula: axis-angle (..., 3) -> rotation matrix (..., 3, 3)."""

    @staticmethod
    def forward(ctx, w: Tensor) -> Tensor:
        ctx.save_for_backward(w)
        a, b, _, _ = _coefficients(w)
        K = hat(w)
        return torch.eye(3, dtype=w.dtype, device=w.device) + a * K + b * (K @ K)

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor) -> Tensor:
        w, = ctx.saved_tensors
        a, b, da, db = _coefficients(w)
        K = hat(w)
        gK = a * g + b * (g @ K + K @ g)
        vee = torch.stack([gK[..., 2, 1] - gK[..., 1, 2],
                           gK[..., 0, 2] - gK[..., 2, 0],
                           gK[..., 1, 0] - gK[..., 0, 1]], -1)
        ga = (g * K).sum((-2, -1))
        gb = (g * (K @ K)).sum((-2, -1))
        return vee + (da * ga + db * gb)[..., None] * w
