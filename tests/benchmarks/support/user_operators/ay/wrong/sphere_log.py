import torch
from torch.autograd import Function


def _ratio(c):
    """theta / sin(theta) and its derivative, as functions of cos(theta)."""
    t = 1 - c
    near = t < 1e-2
    cs = torch.where(near, torch.zeros_like(c), c)
    s2 = 1 - cs * cs
    f = torch.where(near, 1 + t / 3 + 2 * t ** 2 / 15 + 2 * t ** 3 / 35 + 8 * t ** 4 / 315, torch.acos(cs) / s2.sqrt())
    df = torch.where(near, -(1 / 3 + 4 * t / 15 + 6 * t ** 2 / 35 + 32 * t ** 3 / 315), (cs * f - 1) / s2)
    return f, df


class SphereLog(Function):
    """Log map on the unit sphere, log_x(y); x, y (..., D) unit vectors, not antipodal. y = x gives 0."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        c = (x * y).sum(-1, keepdim=True)
        f, _ = _ratio(c)
        return f * (y - c * x)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        c = (x * y).sum(-1, keepdim=True)
        f, df = _ratio(c)
        gc = (df * (y - c * x) * g).sum(-1, keepdim=True) - f * (g * x).sum(-1, keepdim=True)
        return gc * y - f * g, gc * x + f * g
