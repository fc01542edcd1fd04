import torch
from torch.autograd.function import once_differentiable


def _safe_log(q):
    # log with the value 0 at 0, since q * log(q) -> 0
    return torch.where(q > 0, q, torch.ones_like(q)).log()


class ThinPlate(torch.autograd.Function):
    """Thin plate spline in the plane.

    points (N, 2), control (K, 2), coef (K, C), affine (3, C) or None. The points may coincide
    with control points. Returns (N, C).
    """

    @staticmethod
    def forward(ctx, points, control, coef, affine=None):
        q = ((points[:, None] - control) ** 2).sum(-1)
        out = (0.5 * q * _safe_log(q)) @ coef
        if affine is not None:
            out = out + affine[0] + points @ affine[1:]
        ctx.save_for_backward(points, control, coef, affine)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        points, control, coef, affine = ctx.saved_tensors
        diff = points[:, None] - control
        q = (diff ** 2).sum(-1)
        log = _safe_log(q)
        g_coef = (0.5 * q * log).t() @ g
        gq = 0.5 * (log + 1) * (g @ coef.t())
        gd = 2 * gq[..., None] * diff
        gp, ga = gd.sum(1), None
        if affine is not None:
            gp = gp + g @ affine[1:].t()
            ga = torch.cat([g.sum(0, keepdim=True), points.t() @ g])
        return gp, -gd.sum(0), g_coef, ga
