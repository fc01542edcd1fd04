import math

import torch
from torch import nn


def _ccm_ab(wave):
    """Cardelli, Clayton & Mathis (1989), near infrared and optical, wave in micron."""
    x = 1.0 / wave
    ir = x < 1.1
    p = x**1.61
    y = x - 1.82
    a = 1 + y * (0.17699 + y * (-0.50447 + y * (-0.02427 + y * (0.72085 + y * (0.01979 + y * (-0.77530 + y * 0.32999))))))
    b = y * (1.41338 + y * (2.28305 + y * (1.07233 + y * (-5.38434 + y * (-0.62251 + y * (5.30260 - y * 2.09002))))))
    return torch.where(ir, 0.574 * p, a), torch.where(ir, -0.527 * p, b)


class _Redden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flux, av, rv, a, b):
        ctx.save_for_backward(flux, av, rv, a, b)
        return flux * 10 ** (-0.4 * av * (a + b / rv))

    @staticmethod
    def backward(ctx, grad):
        flux, av, rv, a, b = ctx.saved_tensors
        t = 10 ** (-0.4 * av * (a + b / rv))
        d_mag = -0.4 * math.log(10) * grad * flux * t
        d_av = (d_mag * (a + b / rv)).sum()
        d_rv = (-d_mag * av * b / rv**2).sum()
        return grad * t, d_av, d_rv, None, None


class DustScreen(nn.Module):
    """Foreground dust: flux (stars, bands) is dimmed by A(lambda), with A_V and R_V fitted."""

    def __init__(self, wave, av=0.8, rv=3.1):
        super().__init__()
        self.av = nn.Parameter(torch.tensor(av))
        self.rv = nn.Parameter(torch.tensor(rv))
        a, b = _ccm_ab(torch.as_tensor(wave, dtype=torch.float64))
        self.register_buffer("a", a)
        self.register_buffer("b", b)

    def forward(self, flux):
        return _Redden.apply(flux, self.av, self.rv, self.a, self.b)
