import torch
from torch.autograd.function import once_differentiable


def hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*w.shape[:-1], 3, 3)


def unhat_adj(M):
    return torch.stack([M[..., 2, 1] - M[..., 1, 2],
                        M[..., 0, 2] - M[..., 2, 0],
                        M[..., 1, 0] - M[..., 0, 1]], -1)


def coeffs(s):
    small = s < 1e-4
    t = torch.where(small, torch.ones_like(s), s).sqrt()
    A = torch.where(small, 1 - s / 6 + s * s / 120, t.sin() / t)
    B = torch.where(small, 0.5 - s / 24 + s * s / 720, (1 - t.cos()) / (t * t))
    return small, A, B


class SO3Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        K = hat(w)
        _, A, B = coeffs((w * w).sum(-1))
        return torch.eye(3, dtype=w.dtype, device=w.device) + A[..., None, None] * K + B[..., None, None] * (K @ K)

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        w, = ctx.saved_tensors
        s = (w * w).sum(-1)
        K = hat(w)
        KT = K.transpose(-1, -2)
        small, A, B = coeffs(s)
        safe = torch.where(small, torch.ones_like(s), s)
        # d/d(theta^2)
        dA = torch.where(small, -1 / 6 + s / 60, (s.sqrt().cos() - A) / (2 * safe))
        dB = torch.where(small, -1 / 24 + s / 360, (A - 2 * B) / (2 * safe))
        gs = dA * (G * K).sum((-1, -2)) + dB * (G * (K @ K)).sum((-1, -2))
        GK = A[..., None, None] * G + B[..., None, None] * (G @ KT + KT @ G)
        return unhat_adj(GK) + 2 * w * gs[..., None]
