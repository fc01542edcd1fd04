import torch
from torch.autograd import Function


class _Effectiveness(Function):
    @staticmethod
    def forward(ctx, phi, shape):
        ctx.save_for_backward(phi)
        ctx.shape = shape
        small = phi < 0.3
        p = torch.where(small, torch.ones_like(phi), phi)
        q = phi * phi
        if shape == "slab":
            series = 1 + q * (-1 / 3 + q * (2 / 15 + q * (-17 / 315 + q * (62 / 2835 - q * 1382 / 155925))))
            return torch.where(small, series, torch.tanh(p) / p)
        series = 1 + q * (-1 / 15 + q * (2 / 315 + q * (-1 / 1575 + q * 2 / 31185)))
        return torch.where(small, series, 3 * (1 / torch.tanh(p) / p - 1 / p**2))

    @staticmethod
    def backward(ctx, g):
        (phi,) = ctx.saved_tensors
        small = phi < 0.3
        p = torch.where(small, torch.ones_like(phi), phi)
        q = phi * phi
        th = torch.tanh(p)
        if ctx.shape == "slab":
            series = phi * (-2 / 3 + q * (8 / 15 + q * (-34 / 105 + q * (496 / 2835 - q * 2764 / 31185))))
            slope = torch.where(small, series, (1 - th**2) / p - th / p**2)
        else:
            series = phi * (-2 / 15 + q * (8 / 315 + q * (-2 / 525 + q * 16 / 31185)))
            slope = torch.where(small, series, 3 * ((1 - 1 / th**2) / p - 1 / (th * p**2) + 2 / p**3))
        return g * slope, None


def effectiveness_factor(phi, shape="sphere"):
    """Isothermal first-order effectiveness factor of a catalyst pellet, phi >= 0 Thiele modulus."""
    return _Effectiveness.apply(phi, shape)
