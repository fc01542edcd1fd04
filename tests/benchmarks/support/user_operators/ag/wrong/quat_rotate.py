import torch
from torch.autograd import Function


def cross(a, b):
    return torch.linalg.cross(a, b, dim=-1)


class QuatRotate(Function):
    """Rotate v (..., 3) by q (..., 4), scalar first. q needs no unit norm, it's normalised here."""

    @staticmethod
    def forward(ctx, q, v):
        ctx.save_for_backward(q, v)
        q = q / q.norm(dim=-1, keepdim=True)
        w, u = q[..., :1], q[..., 1:]
        t = cross(u, v)
        return v + 2 * w * t + 2 * cross(u, t)

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        norm = q.norm(dim=-1, keepdim=True)
        n = q / norm
        w, u = n[..., :1], n[..., 1:]
        t = cross(u, v)
        # v: the inverse rotation
        s = cross(u, g)
        gv = g - 2 * w * s + 2 * cross(u, s)
        gw = 2 * (g * t).sum(-1, keepdim=True)
        gu = 2 * w * cross(v, g) + 2 * cross(t, g)
        gn = torch.cat([gw, gu], -1)
        gq = (gn - n * (n * gn).sum(-1, keepdim=True)) / norm
        return gq, gv
