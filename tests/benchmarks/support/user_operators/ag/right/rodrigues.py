import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

SMALL = 1e-2


def _hat(v):
    z = torch.zeros_like(v[..., 0])
    x, y, w = v.unbind(-1)
    return torch.stack([z, -w, y, w, z, -x, -y, x, z], -1).reshape(v.shape[:-1] + (3, 3))


def _vee(m):
    return torch.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], -1)


def _coefficients(theta):
    """sin t/t, (1-cos t)/t^2 and their derivatives over t, each with its series near zero."""
    t2 = theta * theta
    small = theta < SMALL
    safe = torch.where(small, torch.ones_like(theta), theta)
    sin, cos = safe.sin(), safe.cos()
    a = torch.where(small, 1 - t2 / 6 + t2 * t2 / 120, sin / safe)
    b = torch.where(small, 0.5 - t2 / 24 + t2 * t2 / 720, (1 - cos) / safe ** 2)
    da = torch.where(small, -1 / 3 + t2 / 30 - t2 * t2 / 840, (cos - sin / safe) / safe ** 2)
    db = torch.where(small, -1 / 12 + t2 / 180 - t2 * t2 / 6720, (sin / safe - 2 * (1 - cos) / safe ** 2) / safe ** 2)
    return a, b, da, db


class AxisAngleToMatrix(Function):
    # (..., 3) -> (..., 3, 3)

    @staticmethod
    def forward(ctx, rvec):
        theta = rvec.norm(dim=-1)
        a, b, _, _ = _coefficients(theta)
        K = _hat(rvec)
        eye = torch.eye(3, dtype=rvec.dtype, device=rvec.device)
        ctx.save_for_backward(rvec)
        return eye + a[..., None, None] * K + b[..., None, None] * (K @ K)

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        rvec, = ctx.saved_tensors
        theta = rvec.norm(dim=-1)
        a, b, da, db = _coefficients(theta)
        K = _hat(rvec)
        KT = K.transpose(-1, -2)
        ga = (G * K).sum((-1, -2))
        gb = (G * (K @ K)).sum((-1, -2))
        gK = a[..., None, None] * G + b[..., None, None] * (G @ KT + KT @ G)
        radial = ga * da + gb * db
        return _vee(gK) + radial.unsqueeze(-1) * rvec
