import torch


def cross(a, b):
    return torch.linalg.cross(a, b, dim=-1)


class QuatRotate(torch.autograd.Function):
    """v -> q v q* for q = (w, x, y, z), shapes (N, 4) and (N, 3).  |q| scales the result by |q|^2."""

    @staticmethod
    def forward(ctx, q, v):
        ctx.save_for_backward(q, v)
        w, u = q[:, :1], q[:, 1:]
        uu = (u * u).sum(-1, keepdim=True)
        uv = (u * v).sum(-1, keepdim=True)
        return (w * w - uu) * v + 2 * uv * u + 2 * w * cross(u, v)

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        w, u = q[:, :1], q[:, 1:]
        uu, uv, ug, vg = ((a * b).sum(-1, keepdim=True) for a, b in ((u, u), (u, v), (u, g), (v, g)))
        gv = (w * w - uu) * g + 2 * ug * u - 2 * w * cross(u, g)
        gw = 2 * w * vg + 2 * (cross(u, v) * g).sum(-1, keepdim=True)
        gu = -2 * vg * u + 2 * (ug * v + uv * g) + 2 * w * cross(v, g)
        return torch.cat([gw, gu], -1), gv
