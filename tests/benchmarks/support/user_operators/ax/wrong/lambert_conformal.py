import math

import torch
from torch.autograd import Function

DEG = math.pi / 180


def _constants(lat1, lat2):
    a, b = lat1 * DEG, lat2 * DEG
    if abs(a - b) < 1e-10:
        n = math.sin(a)
    else:
        n = math.log(math.cos(a) / math.cos(b)) / math.log(math.tan(math.pi / 4 + b / 2) / math.tan(math.pi / 4 + a / 2))
    return n, math.cos(a) * math.tan(math.pi / 4 + a / 2) ** n / n


def _polar(lat, lon, lat1, lat2, lon0):
    n, f = _constants(lat1, lat2)
    return f * torch.tan(math.pi / 4 + lat * DEG / 2) ** -n, n * (lon - lon0) * DEG


class LambertConformal(Function):
    """Lambert conformal conic projection on the unit sphere.

    Args:
        lat, lon: tensors of one shape, in degrees, -90 < lat < 90.
        lat1, lat2: standard parallels, floats, both of one hemisphere (they may be equal).
        lat0, lon0: origin, floats.

    Returns:
        x, y
    """

    @staticmethod
    def forward(ctx, lat, lon, lat1, lat2, lat0, lon0):
        rho, theta = _polar(lat, lon, lat1, lat2, lon0)
        ctx.save_for_backward(lat, lon, rho, theta)
        ctx.conf = lat1, lat2, lon0
        n, f = _constants(lat1, lat2)
        rho0 = f * math.tan(math.pi / 4 + lat0 * DEG / 2) ** -n
        return rho * theta.sin(), rho0 - rho * theta.cos()

    @staticmethod
    def backward(ctx, g_x, g_y):
        lat, lon, rho, theta = ctx.saved_tensors
        n, _ = _constants(*ctx.conf[:2])
        g_rho = g_x * theta.sin() - g_y * theta.cos()
        g_theta = rho * (g_x * theta.cos() + g_y * theta.sin())
        return -n * DEG * rho / torch.cos(lat * DEG) * g_rho, n * DEG * g_theta, None, None, None, None
