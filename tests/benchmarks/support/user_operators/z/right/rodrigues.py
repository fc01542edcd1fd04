import torch
from torch.autograd.function import once_differentiable

SMALL = 1e-3


def hat(r):
    x, y, z = r.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*r.shape[:-1], 3, 3)


def coefficients(t2):
    """sin(t)/t and (1 - cos(t))/t^2 from t^2."""
    small = t2 < SMALL
    safe = torch.where(small, torch.ones_like(t2), t2)
    t = safe.sqrt()
    a = torch.where(small, 1 - t2 / 6 + t2 * t2 / 120, t.sin() / t)
    b = torch.where(small, 0.5 - t2 / 24 + t2 * t2 / 720, 2 * (t / 2).sin().square() / safe)
    return a, b


def slopes(t2, a, b):
    """a'(t)/t and b'(t)/t."""
    small = t2 < SMALL
    safe = torch.where(small, torch.ones_like(t2), t2)
    da = (safe.sqrt().cos() - a) / safe
    db = (a - 2 * b) / safe
    da = torch.where(small, -1 / 3 + t2 / 30 - t2 * t2 / 840, da)
    db = torch.where(small, -1 / 12 + t2 / 180 - t2 * t2 / 6720, db)
    return da, db


class AxisAngleToMatrix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r):
        K = hat(r)
        a, b = coefficients(r.square().sum(-1))
        ctx.save_for_backward(r, a, b)
        eye = torch.eye(3, dtype=r.dtype, device=r.device)
        return eye + a[..., None, None] * K + b[..., None, None] * (K @ K)

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        r, a, b = ctx.saved_tensors
        K = hat(r)
        da, db = slopes(r.square().sum(-1), a, b)
        ga = (G * K).sum((-1, -2))
        gb = (G * (K @ K)).sum((-1, -2))
        gK = a[..., None, None] * G + b[..., None, None] * (G @ K.mT + K.mT @ G)
        gr = torch.stack(
            [gK[..., 2, 1] - gK[..., 1, 2], gK[..., 0, 2] - gK[..., 2, 0], gK[..., 1, 0] - gK[..., 0, 1]], -1
        )
        return gr + (ga * da + gb * db).unsqueeze(-1) * r
