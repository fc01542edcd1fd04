import math
import torch


class LogFilterbank(torch.autograd.Function):
    """log(max(spec @ fb, floor)); spec [..., T, F] >= 0, fb [F, M] >= 0

    base: "e", "10" or "db" (10 log10)
    """

    _scale = {"e": 1.0, "10": 1 / math.log(10), "db": 10 / math.log(10)}

    @staticmethod
    def forward(ctx, spec, fb, floor=1e-6, base="e"):
        energy = torch.matmul(spec, fb)
        ctx.floor, ctx.k = floor, LogFilterbank._scale[base]
        ctx.save_for_backward(spec, fb)
        return ctx.k * energy.clamp(min=floor).log()

    @staticmethod
    def backward(ctx, g):
        spec, fb = ctx.saved_tensors
        energy = torch.matmul(spec, fb)
        above = energy > ctx.floor
        ge = ctx.k * g / energy.masked_fill(~above, 1.0)
        ge = ge.masked_fill(~above, 0.0)
        g_spec = torch.matmul(ge, fb.t())
        g_fb = torch.matmul(spec.flatten(0, -2).t(), ge.flatten(0, -2))
        return g_spec, g_fb, None, None
