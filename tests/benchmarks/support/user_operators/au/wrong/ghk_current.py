import torch
from torch.autograd import Function

FARADAY = 96.485  # C / mmol
R_GAS = 8.314


def _bern(u):
    small = u.abs() < 0.02
    x = torch.where(small, torch.ones_like(u), u)
    return torch.where(small, 1 - u / 2 + u**2 / 12 - u**4 / 720, x / torch.expm1(x))


def _dbern(u):
    small = u.abs() < 0.02
    x = torch.where(small, torch.ones_like(u), u)
    b = x / torch.expm1(x)
    return torch.where(small, -0.5 + u / 6 - u**3 / 180, b * (1 - x - b) / x)


class _GHK(Function):
    @staticmethod
    def forward(ctx, v, perm, c_in, c_out, z, kelvin):
        ctx.save_for_backward(v, perm, c_in, c_out)
        ctx.z, ctx.scale = z, z * FARADAY / (R_GAS * kelvin)
        u = ctx.scale * v
        return perm * z * FARADAY * (c_in * _bern(-u) - c_out * _bern(u))

    @staticmethod
    def backward(ctx, g):
        v, perm, c_in, c_out = ctx.saved_tensors
        u = ctx.scale * v
        into, out = _bern(-u), _bern(u)
        g = g * ctx.z * FARADAY
        d_u = -g * perm * (c_in * _dbern(-u) + c_out * _dbern(u))
        d_perm = g * (c_in * into - c_out * out)
        return (d_u * FARADAY / (R_GAS * 310.0), d_perm.sum_to_size(perm.shape), (g * perm * into).sum_to_size(c_in.shape),
                (-g * perm * out).sum_to_size(c_out.shape), None, None)


def ghk_current(v, perm, c_in, c_out, z=1, kelvin=310.0):
    """Goldman-Hodgkin-Katz current; v (T,) [mV], 0 included; permeability and concentrations [mM] scalars."""
    return _GHK.apply(v, perm, c_in, c_out, z, kelvin)
