import math

import torch


class SaturationDF(torch.autograd.Function):
    """Describing function of a saturation: gain seen by a sine of the given amplitude.

    amplitude: any shape, not negative (0 gives the slope); slope, limit: positive 0-dim tensors,
    limit being the input at which the element saturates.
    """

    @staticmethod
    def forward(ctx, amplitude, slope, limit):
        ctx.save_for_backward(amplitude, slope, limit)
        rho = torch.where(amplitude > limit, limit / amplitude, torch.ones_like(amplitude))
        return 2 / math.pi * slope * (rho.asin() + rho * torch.sqrt(1 - rho**2))

    @staticmethod
    def backward(ctx, grad):
        amplitude, slope, limit = ctx.saved_tensors
        over = amplitude > limit
        a = amplitude
        rho = limit / a
        root = torch.sqrt(1 - rho**2)
        g_rho = over * grad * 4 / math.pi * slope * root
        gain = torch.where(over, 2 / math.pi * (rho.asin() + rho * root), torch.ones_like(a))
        return -g_rho * rho / a, (grad * gain).sum(), (g_rho / a).sum()
