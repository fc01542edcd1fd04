import torch


def _coeffs(w):
    t = (w * w).sum(-1, keepdim=True)
    small = t < 1e-2
    ts = torch.where(small, torch.ones_like(t), t)
    th = ts.sqrt()
    b = torch.where(small, 0.5 - t / 24 + t * t / 720, (1 - th.cos()) / ts)
    c = torch.where(small, 1 / 6 - t / 120 + t * t / 5040, (th - th.sin()) / (ts * th))
    return t, small, b, c


class SO3LeftJacobian(torch.autograd.Function):
    """Apply the left Jacobian of SO(3) to a vector: J_l(w) v.

    This is the translation part of the SE(3) exponential map.

    Args:
        w (Tensor): rotation vectors, shape (..., 3). Zero rotation is allowed.
        v (Tensor): vectors, shape (..., 3).

    Returns:
        Tensor: J_l(w) v, shape (..., 3).
    """

    @staticmethod
    def forward(ctx, w, v):
        ctx.save_for_backward(w, v)
        _, _, b, c = _coeffs(w)
        wv = torch.linalg.cross(w, v)
        return v + b * wv + c * torch.linalg.cross(w, wv)

    @staticmethod
    def backward(ctx, g):
        w, v = ctx.saved_tensors
        t, small, b, c = _coeffs(w)
        ts = torch.where(small, torch.ones_like(t), t)
        sinc = torch.where(small, torch.ones_like(t), ts.sqrt().sin() / ts.sqrt())
        db = torch.where(small, -1 / 12 + t / 180 - t * t / 6720, (sinc - 2 * b) / ts)
        dc = (b - 3 * c) / t
        wv = torch.linalg.cross(w, v)
        wwv = torch.linalg.cross(w, wv)
        wg = torch.linalg.cross(w, g)
        gv = g - b * wg + c * torch.linalg.cross(w, wg)

        def dot(x, y):
            return (x * y).sum(-1, keepdim=True)

        gw = (dot(g, wv) * db + dot(g, wwv) * dc) * w + b * torch.linalg.cross(v, g)
        gw = gw + c * (g * dot(w, v) + v * dot(g, w) - 2 * w * dot(g, v))
        return gw, gv
