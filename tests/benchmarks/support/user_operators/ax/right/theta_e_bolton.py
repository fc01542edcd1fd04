import torch


class ThetaEBolton(torch.autograd.Function):
    """Equivalent potential temperature after Bolton (1980), elementwise on tensors of one shape.

    Args:
        temp: air temperature in K.
        pressure: in hPa, positive.
        mixing: mixing ratio of water vapour in kg/kg, positive.
    """

    @staticmethod
    def forward(ctx, temp, pressure, mixing):
        vapour = pressure * mixing / (0.622 + mixing)
        t_lcl = 2840 / (3.5 * temp.log() - vapour.log() - 4.805) + 55
        theta = temp * (1000 / pressure) ** (0.2854 * (1 - 0.28 * mixing))
        out = theta * torch.exp((3.376 / t_lcl - 0.00254) * 1000 * mixing * (1 + 0.81 * mixing))
        ctx.save_for_backward(temp, pressure, mixing, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        temp, pressure, mixing, out = ctx.saved_tensors
        vapour = pressure * mixing / (0.622 + mixing)
        level = 3.5 * temp.log() - vapour.log() - 4.805
        t_lcl = 2840 / level + 55
        g = grad * out
        moist = 1000 * mixing * (1 + 0.81 * mixing)
        # through the temperature of the lifting condensation level
        g_level = g * moist * 3.376 / t_lcl**2 * 2840 / level**2
        g_temp = g / temp + 3.5 * g_level / temp
        g_pressure = -g * 0.2854 * (1 - 0.28 * mixing) / pressure - g_level / pressure
        g_mixing = g * (
            -0.2854 * 0.28 * (1000 / pressure).log() + (3.376 / t_lcl - 0.00254) * 1000 * (1 + 1.62 * mixing)
        ) - g_level * 0.622 / (mixing * (0.622 + mixing))
        return g_temp, g_pressure, g_mixing
