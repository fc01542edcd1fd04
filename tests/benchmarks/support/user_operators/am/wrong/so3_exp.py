import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

SMALL = 1e-2


def hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*w.shape[:-1], 3, 3)


def coefficients(sq):
    """sin(t)/t, (1 - cos t)/t^2 and their derivatives divided by t; sq is t^2"""
    small = sq < SMALL
    safe = torch.where(small, torch.ones_like(sq), sq)
    t = safe.sqrt()
    a, b = t.sin() / t, (1 - t.cos()) / safe
    da, db = (t.cos() - a) / safe, (a - 2 * b) / safe
    a = torch.where(small, 1 - sq / 6 * (1 - sq / 20 * (1 - sq / 42)), a)
    b = torch.where(small, 0.5 - sq / 24 * (1 - sq / 30 * (1 - sq / 56)), b)
    da = torch.where(small, -1 / 3 + sq / 30 * (1 - sq / 28 * (1 - sq / 54)), da)
    db = torch.where(small, -1 / 12 + sq / 180 * (1 - sq * 3 / 112 * (1 - sq * 8 / 405)), db)
    return a, b, da, db


class SO3Exp(Function):
    """Rotation vectors (..., 3) to rotation matrices (..., 3, 3)."""

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        K = hat(w)
        a, b, _, _ = coefficients((w * w).sum(-1))
        return torch.eye(3, dtype=w.dtype, device=w.device) + a[..., None, None] * K + b[..., None, None] * (K @ K)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, = ctx.saved_tensors
        K = hat(w)
        sq = (w * w).sum(-1)
        a, b, _, _ = coefficients(sq)
        da, db = (sq.sqrt().cos() - a) / sq, (a - 2 * b) / sq
        Kt = K.transpose(-1, -2)
        M = a[..., None, None] * g + b[..., None, None] * (g @ Kt + Kt @ g)
        gw = torch.stack([M[..., 2, 1] - M[..., 1, 2], M[..., 0, 2] - M[..., 2, 0], M[..., 1, 0] - M[..., 0, 1]], -1)
        pull = da * (g * K).sum((-1, -2)) + db * (g * (K @ K)).sum((-1, -2))
        return gw + pull[..., None] * w
