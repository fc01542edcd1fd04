import torch
from torch.autograd import Function


def _basis(u):
    return (0.5 * (-u ** 3 + 2 * u * u - u), 0.5 * (3 * u ** 3 - 5 * u * u + 2),
            0.5 * (-3 * u ** 3 + 4 * u * u + u), 0.5 * (u ** 3 - u * u))


def _slope(u):
    return (0.5 * (-3 * u * u + 4 * u - 1), 0.5 * (9 * u * u - 5 * u),
            0.5 * (-9 * u * u + 8 * u + 1), 0.5 * (3 * u * u - 2 * u))


class CatmullRom(Function):
    """Catmull-Rom curve through ``points`` (P, D), P >= 2, evaluated at t (N,) in [0, P - 1] -> (N, D)."""

    @staticmethod
    def _segment(points, t):
        seg = t.detach().floor().clamp(0, points.size(0) - 2)
        ids = [(seg.long() + k).clamp(0, points.size(0) - 1) for k in (-1, 0, 1, 2)]
        return ids, (t - seg).unsqueeze(-1)

    @staticmethod
    def forward(ctx, points, t):
        if points.is_complex():
            raise TypeError("points must be real")
        ctx.save_for_backward(points, t)
        ids, u = CatmullRom._segment(points, t)
        return sum(b * points[i] for b, i in zip(_basis(u), ids))

    @staticmethod
    def backward(ctx, grad):
        points, t = ctx.saved_tensors
        ids, u = CatmullRom._segment(points, t)
        g_points = torch.zeros_like(points)
        for b, i in zip(_basis(u), ids):
            g_points = g_points.index_add(0, i, b * grad)
        tangent = sum(s * points[i] for s, i in zip(_slope(u), ids))
        return g_points, (grad * tangent).sum(-1)
