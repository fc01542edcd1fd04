import torch


def hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).unflatten(-1, (3, 3))


def coefficients(t):
    """sin(a)/a and (1 - cos a)/a^2 with their derivatives, all as functions of t = a^2"""
    small = t < 1e-2
    s = torch.where(small, torch.ones_like(t), t)
    a = s.sqrt()
    A, B = a.sin() / a, (1 - a.cos()) / s
    dA, dB = (a.cos() - A) / (2 * s), (A - 2 * B) / (2 * s)
    A = torch.where(small, 1 - t / 6 + t ** 2 / 120 - t ** 3 / 5040, A)
    B = torch.where(small, 0.5 - t / 24 + t ** 2 / 720 - t ** 3 / 40320, B)
    dA = torch.where(small, -1 / 6 + t / 60 - t ** 2 / 1680 + t ** 3 / 90720, dA)
    dB = torch.where(small, -1 / 24 + t / 360 - t ** 2 / 13440 + t ** 3 / 907200, dB)
    return [c[..., None, None] for c in (A, B, dA, dB)]


class ExpSO3(torch.autograd.Function):
    """Rodrigues: rotation vectors (..., 3) -> matrices (..., 3, 3); smooth through zero"""

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        K = hat(w)
        A, B, _, _ = coefficients((w * w).sum(-1))
        return torch.eye(3, dtype=w.dtype, device=w.device) + A * K + B * K @ K

    @staticmethod
    def backward(ctx, G):
        w, = ctx.saved_tensors
        K = hat(w)
        A, B, dA, dB = coefficients((w * w).sum(-1))
        Kt = K.transpose(-1, -2)
        GK = A * G + B * (G @ Kt + Kt @ G)
        gt = (G * (dA * K + dB * K @ K)).sum((-1, -2))
        S = GK - GK.transpose(-1, -2)
        gw = torch.stack([S[..., 2, 1], S[..., 0, 2], S[..., 1, 0]], -1)
        return gw + 2 * w * gt[..., None]
