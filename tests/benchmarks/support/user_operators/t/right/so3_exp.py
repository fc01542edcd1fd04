import torch


def hat(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*w.shape[:-1], 3, 3)


def coefficients(w):
    t = (w * w).sum(-1)[..., None, None]
    small = t < 1e-3
    safe = torch.where(small, torch.ones_like(t), t)
    th = safe.sqrt()
    A = torch.where(small, 1 - t / 6 + t**2 / 120 - t**3 / 5040, th.sin() / th)
    B = torch.where(small, 0.5 - t / 24 + t**2 / 720 - t**3 / 40320, 2 * (th / 2).sin() ** 2 / safe)
    return t, small, safe, A, B


class SO3Exp(torch.autograd.Function):
    """Rodrigues' formula, rotation vectors (..., 3) -> matrices (..., 3, 3)."""

    @staticmethod
    def forward(w):
        _, _, _, A, B = coefficients(w)
        K = hat(w)
        return torch.eye(3, dtype=w.dtype, device=w.device) + A * K + B * (K @ K)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, G):
        (w,) = ctx.saved_tensors
        t, small, safe, A, B = coefficients(w)
        K = hat(w)
        gK = A * G + B * (K.mT @ G + G @ K.mT)
        gw = torch.stack([gK[..., 2, 1] - gK[..., 1, 2], gK[..., 0, 2] - gK[..., 2, 0],
                          gK[..., 1, 0] - gK[..., 0, 1]], -1)
        dA = torch.where(small, -1 / 6 + t / 60 - t**2 / 1680, (safe.sqrt().cos() - A) / (2 * safe))
        dB = torch.where(small, -1 / 24 + t / 360 - t**2 / 13440, (A / 2 - B) / safe)
        s = (G * (dA * K + dB * (K @ K))).sum((-2, -1))
        return gw + 2 * w * s[..., None]
