import torch
from torch.autograd.function import once_differentiable


def hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*w.shape[:-1], 3, 3)


def coefficients(theta2):
    """sin(t)/t, (1-cos t)/t^2, (t-sin t)/t^3"""
    small = theta2 < 1e-4
    t2 = torch.where(small, torch.ones_like(theta2), theta2)
    t = t2.sqrt()
    a = torch.where(small, 1 - theta2 / 6 + theta2 ** 2 / 120, t.sin() / t)
    b = torch.where(small, 0.5 - theta2 / 24 + theta2 ** 2 / 720, (1 - t.cos()) / t2)
    c = torch.where(small, 1 / 6 - theta2 / 120 + theta2 ** 2 / 5040, (t - t.sin()) / (t2 * t))
    return a, b, c


class SO3Exp(torch.autograd.Function):
    """Rodrigues: (..., 3) rotation vectors to (..., 3, 3) rotation matrices."""

    @staticmethod
    def forward(ctx, w):
        K = hat(w)
        a, b, _ = coefficients((w * w).sum(-1)[..., None, None])
        R = torch.eye(3, dtype=w.dtype, device=w.device) + a * K + b * (K @ K)
        ctx.save_for_backward(w, R)
        return R

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        w, R = ctx.saved_tensors
        K = hat(w)
        _, b, c = coefficients((w * w).sum(-1)[..., None, None])
        Jr = torch.eye(3, dtype=w.dtype, device=w.device) - b * K + c * (K @ K)
        M = R.transpose(-1, -2) @ G
        M = M - M.transpose(-1, -2)
        v = torch.stack([M[..., 2, 1], M[..., 0, 2], M[..., 1, 0]], -1)
        return (Jr.transpose(-1, -2) @ v[..., None])[..., 0]
