import torch


def _hat(w):
    z = torch.zeros_like(w[..., 0])
    x, y, u = w.unbind(-1)
    return torch.stack([z, -u, y, u, z, -x, -y, x, z], -1).reshape(*w.shape[:-1], 3, 3)


class _SO3Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        t = (w * w).sum(-1)
        small = t < 1e-6
        ts = torch.where(small, torch.ones_like(t), t)
        th = ts.sqrt()
        a = torch.where(small, 1 - t / 6 + t * t / 120, th.sin() / th)
        b = torch.where(small, 0.5 - t / 24 + t * t / 720, (1 - th.cos()) / ts)
        da = torch.where(small, -1 / 6 + t / 60, (th * th.cos() - th.sin()) / (2 * ts * th))
        db = torch.where(small, -1 / 24 + t / 360, (th * th.sin() - 2 * (1 - th.cos())) / (2 * ts * ts))
        K = _hat(w)
        K2 = K @ K
        ctx.save_for_backward(w, a, b, da, db, K, K2)
        eye = torch.eye(3, dtype=w.dtype, device=w.device)
        return eye + a[..., None, None] * K + b[..., None, None] * K2

    @staticmethod
    def backward(ctx, g):
        w, a, b, da, db, K, K2 = ctx.saved_tensors
        skew = torch.stack([g[..., 2, 1] - g[..., 1, 2], g[..., 0, 2] - g[..., 2, 0], g[..., 1, 0] - g[..., 0, 1]], -1)
        sym = ((g + g.transpose(-1, -2)) @ w.unsqueeze(-1)).squeeze(-1)
        tr = g.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
        gt = (g * K).sum((-2, -1)) * da + (g * K2).sum((-2, -1)) * db
        return a[..., None] * skew + b[..., None] * (sym - 2 * tr * w) + 2 * gt[..., None] * w


def so3_exp(rotvec, transpose=False):
    """Axis-angle vectors (..., 3) to rotation matrices (..., 3, 3)."""
    R = _SO3Exp.apply(rotvec)
    return R.transpose(-1, -2) if transpose else R
