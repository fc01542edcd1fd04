import torch
from torch.autograd import Function


class SolarCellCurrent(Function):
    """Current of a solar cell, single diode model without shunt.

    Solves ``I = light - dark * (exp((v + I * rs) / a) - 1)`` by Newton steps. Tensors of one shape;
    ``a`` is the modified ideality factor (float, volts).
    """

    @staticmethod
    def forward(ctx, v, light, dark, rs, a=0.2, steps=40):
        i = light.clone()
        for _ in range(steps):
            x = dark * torch.exp((v + i * rs) / a)
            i = i - (i - light + x - dark) / (1 + x * rs / a)
        ctx.save_for_backward(v, dark, rs, i)
        ctx.a = a
        return i

    @staticmethod
    def backward(ctx, g):
        v, dark, rs, i = ctx.saved_tensors
        x = torch.exp((v + i * rs) / ctx.a)
        k = dark * x / ctx.a
        g = g / (1 + k * rs)
        return -g * k, g, g * (1 - x), -g * k * i, None, None
