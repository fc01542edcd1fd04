import torch
from torch.autograd.function import once_differentiable

_EPS = 1e-12


class _PoincareDist(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, v, c):
        uu = (u * u).sum(-1)
        vv = (v * v).sum(-1)
        sq = ((u - v) ** 2).sum(-1)
        x = (2 * c * sq / ((1 - c * uu) * (1 - c * vv))).clamp(min=_EPS)
        dist = torch.log1p(x + torch.sqrt(x * (x + 2))) / c.sqrt()
        ctx.save_for_backward(u, v, c, uu, vv, x, dist)
        return dist

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        u, v, c, uu, vv, x, dist = ctx.saved_tensors
        au, av = 1 - c * uu, 1 - c * vv
        k = grad / torch.sqrt(x * (x + 2)) / c.sqrt() * (x > _EPS)
        dsq = 4 * c / (au * av)
        gu = (k * dsq)[..., None] * (u - v) + (k * x * 2 * c / au)[..., None] * u
        gv = (k * dsq)[..., None] * (v - u) + (k * x * 2 * c / av)[..., None] * v
        gc = k * x * (1 / c + uu / au + vv / av) - grad * dist / (2 * c)
        return gu, gv, gc.sum()


def poincare_distance(u, v, c):
    """Geodesic distance in the Poincare ball of curvature -c.

    u, v: (..., D) with c |u|^2 < 1, same shape; c: positive scalar tensor. Returns (...).
    """
    return _PoincareDist.apply(u, v, c)
