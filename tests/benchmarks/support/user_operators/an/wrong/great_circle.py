import math
import torch
from torch import Tensor

EARTH_KM = 6371.0088
RAD = math.pi / 180


def _parts(lat1, lon1, lat2, lon2):
    p1, p2 = lat1 * RAD, lat2 * RAD
    dp, dl = (p2 - p1) / 2, (lon2 - lon1) * RAD / 2
    a = torch.sin(dp) ** 2 + torch.cos(p1) * torch.cos(p2) * torch.sin(dl) ** 2
    return p1, p2, dp, dl, a


@torch.library.custom_op("quakeloc_b::great_circle", mutates_args=())
def great_circle(lat1: Tensor, lon1: Tensor, lat2: Tensor, lon2: Tensor) -> Tensor:
    """Haversine distance in km, coordinates in degrees, all of one shape."""
    a = _parts(lat1, lon1, lat2, lon2)[-1]
    return 2 * EARTH_KM * torch.asin(a.clamp(0, 1).sqrt())


@great_circle.register_fake
def _(lat1, lon1, lat2, lon2):
    return torch.empty_like(lat1)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    p1, p2, dp, dl, a = _parts(*ctx.saved_tensors)
    ok = (a > 0) & (a < 1)
    safe = torch.where(ok, a, torch.full_like(a, 0.5))
    ga = torch.where(ok, g * EARTH_KM / (safe * (1 - safe)).sqrt(), torch.zeros_like(a)) * RAD
    s2 = torch.sin(dl) ** 2
    swing = torch.sin(dp) * torch.cos(dp)
    g1 = -ga * swing
    g2 = ga * (swing - torch.cos(p1) * torch.sin(p2) * s2)
    gl = ga * torch.cos(p1) * torch.cos(p2) * torch.sin(dl) * torch.cos(dl)
    return g1, -gl, g2, gl


great_circle.register_autograd(_backward, setup_context=_setup)
