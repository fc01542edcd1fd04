import torch
from torch.autograd import Function


def cross(a, b):
    return torch.linalg.cross(*torch.broadcast_tensors(a, b))


def _reduce_to(t, shape):
    """Undo broadcasting."""
    extra = t.dim() - len(shape)
    if extra:
        t = t.sum(tuple(range(extra)))
    dims = tuple(i for i, n in enumerate(shape) if n == 1 and t.shape[i] != 1)
    return t.sum(dims, keepdim=True) if dims else t


class QuaternionRotate(Function):
    """Rotate vectors by quaternions.

    q: (..., 4), order (w, x, y, z), any length but zero (normalised here)
    v: (..., 3); the leading axes of q and v broadcast
    """

    @staticmethod
    def forward(ctx, q, v):
        ctx.save_for_backward(q, v)
        qn = q / q.norm(dim=-1, keepdim=True)
        w, u = qn[..., :1], qn[..., 1:]
        t = 2 * cross(u, v)
        return v + w * t + cross(u, t)

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        norm = q.norm(dim=-1, keepdim=True)
        qn = q / norm
        w, u = qn[..., :1], qn[..., 1:]
        t = 2 * cross(u, v)
        gt = w * g + cross(g, u)
        gq = gv = None
        if ctx.needs_input_grad[0]:
            gw = (g * t).sum(-1, keepdim=True)
            gu = cross(t, g) + 2 * cross(v, gt)
            gqn = torch.cat([gw, gu], -1)
            gq = (gqn - qn * (qn * gqn).sum(-1, keepdim=True)) / norm
            gq = _reduce_to(gq, q.shape)
        if ctx.needs_input_grad[1]:
            gv = _reduce_to(g + 2 * cross(gt, u), v.shape)
        return gq, gv
