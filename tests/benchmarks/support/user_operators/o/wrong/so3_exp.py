import torch


def _hat(w):
    zero = torch.zeros_like(w[..., 0])
    x, y, z = w.unbind(-1)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).unflatten(-1, (3, 3))


def _coefficients(w):
    """sin(t)/t, (1 - cos t)/t^2 and their derivatives divided by t."""
    sq = (w * w).sum(-1)
    small = sq < 1e-4
    safe = torch.where(small, torch.ones_like(sq), sq)
    t = safe.sqrt()
    a = torch.where(small, 1 - sq / 6 + sq * sq / 120, t.sin() / t)
    b = torch.where(small, 0.5 - sq / 24 + sq * sq / 720, 2 * (t / 2).sin().pow(2) / safe)
    da = torch.where(small, -1 / 3 + sq / 30 - sq * sq / 840, (t.cos() - a) / safe)
    db = torch.where(small, -1 / 12 + sq / 180 - sq * sq / 6720, (a - 2 * b) / safe)
    return [c[..., None, None] for c in (a, b)], [c.unsqueeze(-1) for c in (da, db)]


class SO3Exp(torch.autograd.Function):
    """Rotation vectors (..., 3) to rotation matrices (..., 3, 3) by Rodrigues' formula."""

    @staticmethod
    def forward(ctx, w):
        if w.size(-1) != 3:
            raise ValueError("expected (..., 3)")
        ctx.save_for_backward(w)
        (a, b), _ = _coefficients(w)
        K = _hat(w)
        return torch.eye(3, dtype=w.dtype, device=w.device) + a * K + b * (K @ K)

    @staticmethod
    def backward(ctx, g):
        w, = ctx.saved_tensors
        (a, b), (da, db) = _coefficients(w)
        K = _hat(w)
        gk = a * g + b * (g @ K + K @ g)
        vee = torch.stack([gk[..., 2, 1] - gk[..., 1, 2], gk[..., 0, 2] - gk[..., 2, 0], gk[..., 1, 0] - gk[..., 0, 1]], -1)
        ga = (g * K).sum((-2, -1)).unsqueeze(-1)
        gb = (g * (K @ K)).sum((-2, -1)).unsqueeze(-1)
        return vee + (ga * da + gb * db) * w
