import torch


def hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).unflatten(-1, (3, 3))


def _coef(t2):
    """sin t / t, (1 - cos t) / t^2 and their derivatives by t^2"""
    small = t2 < 1e-8
    s = torch.where(small, torch.ones_like(t2), t2)
    t = s.sqrt()
    a = torch.where(small, 1 - t2 / 6, t.sin() / t)
    b = torch.where(small, 0.5 - t2 / 24, (1 - t.cos()) / s)
    da = torch.where(small, -1 / 6 + t2 / 60, (t * t.cos() - t.sin()) / (2 * t * s))
    db = torch.where(small, -1 / 24 + t2 / 360, (t * t.sin() - 2 + 2 * t.cos()) / (2 * s * s))
    return a, b, da, db


class SO3Exp(torch.autograd.Function):
    """Rodrigues' formula, axis-angle (..., 3) -> rotation matrices (..., 3, 3)."""

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        a, b, _, _ = _coef((w * w).sum(-1)[..., None, None])
        K = hat(w)
        return torch.eye(3, dtype=w.dtype, device=w.device) + a * K + b * (K @ K)

    @staticmethod
    def backward(ctx, G):
        w, = ctx.saved_tensors
        a, b, da, db = _coef((w * w).sum(-1)[..., None, None])
        K = hat(w)
        gK = a * G + b * (G @ K.mT + K.mT @ G)
        S = gK - gK.mT
        gw = torch.stack([S[..., 2, 1], S[..., 0, 2], S[..., 1, 0]], -1)
        ga = (G * K * da).sum((-1, -2)) + (G * (K @ K) * db).sum((-1, -2))
        return gw + 2 * ga[..., None] * w
