import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Haversine(Function):
    """Great-circle distance between points given by latitude and longitude.

    Args:
        lat1, lon1, lat2, lon2: tensors of one shape.
        degrees: angles are in degrees instead of radians.
        radius: of the sphere, default the Earth's in km.

    The gradient at coincident points is zero.
    """

    @staticmethod
    def forward(ctx, lat1, lon1, lat2, lon2, degrees=False, radius=6371.0088):
        unit = math.pi / 180 if degrees else 1.0
        p1, l1, p2, l2 = (x * unit for x in (lat1, lon1, lat2, lon2))
        sin_p, sin_l = ((p2 - p1) / 2).sin(), ((l2 - l1) / 2).sin()
        a = sin_p**2 + p1.cos() * p2.cos() * sin_l**2
        ctx.save_for_backward(p1, l1, p2, l2, a)
        ctx.unit, ctx.radius = unit, radius
        return 2 * radius * torch.asin(a.clamp(max=1).sqrt())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        p1, l1, p2, l2, a = ctx.saved_tensors
        s2 = ((l2 - l1) / 2).sin() ** 2
        outer = grad * ctx.radius / (a * (1 - a)).clamp(min=1e-30).sqrt()
        half = 0.5 * (p2 - p1).sin()
        g_lat1 = outer * (-half - p1.sin() * p2.cos() * s2)
        g_lat2 = outer * (half - p1.cos() * p2.sin() * s2)
        g_lon2 = outer * 0.5 * p1.cos() * p2.cos() * (l2 - l1).sin()
        return g_lat1, -g_lon2, g_lat2, g_lon2, None, None
