import torch
from torch.autograd.function import once_differentiable


def hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*w.shape[:-1], 3, 3)


class SO3Exp(torch.autograd.Function):
    """Rotation vectors (..., 3) to rotation matrices (..., 3, 3)."""

    @staticmethod
    def forward(ctx, w):
        t2 = (w * w).sum(-1)[..., None, None]
        small = t2 < 1e-2
        t = torch.sqrt(torch.where(small, torch.ones_like(t2), t2))
        a = torch.where(small, 1 - t2 / 6 + t2 ** 2 / 120 - t2 ** 3 / 5040, torch.sin(t) / t)
        b = torch.where(small, 0.5 - t2 / 24 + t2 ** 2 / 720 - t2 ** 3 / 40320, (1 - torch.cos(t)) / t ** 2)
        K = hat(w)
        ctx.save_for_backward(w, a, b)
        return torch.eye(3, dtype=w.dtype, device=w.device) + a * K + b * (K @ K)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, a, b = ctx.saved_tensors
        t2 = (w * w).sum(-1)[..., None, None]
        small = t2 < 1e-2
        d2 = torch.where(small, torch.ones_like(t2), t2)
        da = torch.where(small, -1 / 3 + t2 / 30 - t2 ** 2 / 840 + t2 ** 3 / 45360, (torch.cos(torch.sqrt(d2)) - a) / d2)
        db = torch.where(small, -1 / 12 + t2 / 180 - t2 ** 2 / 6720 + t2 ** 3 / 453600, (a - 2 * b) / d2)
        K = hat(w)
        Kt = K.transpose(-1, -2)
        gK = a * g + b * (K @ g + g @ K)
        vee = torch.stack([gK[..., 2, 1] - gK[..., 1, 2], gK[..., 0, 2] - gK[..., 2, 0], gK[..., 1, 0] - gK[..., 0, 1]], -1)
        along = da * (g * K).sum((-1, -2), keepdim=True) + db * (g * (K @ K)).sum((-1, -2), keepdim=True)
        return vee + along.squeeze(-1) * w
