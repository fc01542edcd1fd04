import torch
from torch import Tensor

WATER = 6.112, 17.62, 243.12
ICE = 6.112, 22.46, 272.62


def _vapour(t):
    cold = t < 0
    a, b, c = (torch.where(cold, torch.full_like(t, i), torch.full_like(t, w)) for w, i in zip(WATER, ICE))
    return a * torch.exp(b * t / (c + t)), b, c


@torch.library.custom_op("wx::mixing_ratio", mutates_args=())
def _mixing(t: Tensor, p: Tensor, rh: Tensor) -> Tensor:
    e = rh * _vapour(t)[0]
    return 622.0 * e / (p - e)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    t, p, rh = ctx.saved_tensors
    es, b, c = _vapour(t)
    e = rh * es
    ge = g * 622.0 * p / (p - e) ** 2
    gt = ge * e * b * c / (c + t) ** 2
    gp = -g * 622.0 * e / (p - e) ** 2
    return gt.sum_to_size(t.shape), gp.sum_to_size(p.shape), (ge * es).sum_to_size(rh.shape)


_mixing.register_autograd(_backward, setup_context=_setup)


def mixing_ratio(t, p, rh):
    """Mixing ratio [g/kg]: t [degC], p [hPa], rh in [0, 1]; saturation over ice below freezing. Broadcasts."""
    return torch.ops.wx.mixing_ratio(t, p, rh)
