import math

import torch

_SCALE = {"ln": 1.0, "log10": 1.0 / math.log(10.0), "db": 10.0 / math.log(10.0)}


class LogMel(torch.autograd.Function):
    """LogMel.apply(power, filters, floor, unit)

    power    (B, F, T) non-negative
    filters  (M, F)
    returns  (B, M, T), log of the mel energies clamped below at `floor`
    """

    @staticmethod
    def forward(ctx, power, filters, floor=1e-5, unit="ln"):
        mel = torch.einsum("mf,bft->bmt", filters, power)
        ctx.save_for_backward(power, filters)
        ctx.floor = floor
        ctx.k = _SCALE[unit]
        return ctx.k * mel.clamp(min=floor).log()

    @staticmethod
    def backward(ctx, g):
        power, filters = ctx.saved_tensors
        mel = torch.einsum("mf,bft->bmt", filters, power)
        loud = mel > ctx.floor
        gm = ctx.k * g * loud / mel.clamp(min=ctx.floor)
        g_power = torch.einsum("mf,bmt->bft", filters, gm)
        g_filters = torch.einsum("bmt,bft->mf", gm, power)
        return g_power, g_filters, None, None
