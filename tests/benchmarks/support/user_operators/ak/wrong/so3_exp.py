import torch
from torch.autograd.function import once_differentiable


def _hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(w.shape[:-1] + (3, 3))


def _ab(t2):
    small = t2 < 1e-4
    s = torch.where(small, torch.ones_like(t2), t2)
    th = s.sqrt()
    a = torch.where(small, 1 - t2 / 6, th.sin() / th)
    b = torch.where(small, 0.5 - t2 / 24, (1 - th.cos()) / s)
    return a, b


class SO3Exp(torch.autograd.Function):
    """Rotation matrices (N, 3, 3) of rotation vectors (N, 3)."""

    @staticmethod
    def forward(ctx, w):
        t2 = w.square().sum(-1)
        a, b = _ab(t2)
        k = _hat(w)
        ctx.save_for_backward(w, k, a, b, t2)
        eye = torch.eye(3, dtype=w.dtype, device=w.device)
        return eye + a[..., None, None] * k + b[..., None, None] * (k @ k)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, k, a, b, t2 = ctx.saved_tensors
        small = t2 < 1e-4
        s = torch.where(small, torch.ones_like(t2), t2)
        # da/dtheta / theta and db/dtheta / theta
        da = (t2.sqrt().cos() - a) / t2
        db = (a - 2 * b) / t2
        kt = k.transpose(-1, -2)
        gk = a[..., None, None] * g + b[..., None, None] * (g @ kt + kt @ g)
        gw = torch.stack([gk[..., 2, 1] - gk[..., 1, 2], gk[..., 0, 2] - gk[..., 2, 0], gk[..., 1, 0] - gk[..., 0, 1]], -1)
        along = da * (g * k).sum((-1, -2)) + db * (g * (k @ k)).sum((-1, -2))
        return gw + along[..., None] * w
