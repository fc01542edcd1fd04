import math
import torch

TWO_PI = 2 * math.pi


class _InstFreq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, phase, hop, rate, advance):
        ctx.scale = rate / (TWO_PI * hop)
        ctx.T = phase.shape[-1]
        d = torch.diff(phase, dim=-1)
        if advance is not None:
            d = d - advance[:, None]
        d = d - TWO_PI * torch.round(d / TWO_PI)
        if advance is not None:
            d = d + advance[:, None]
        return d * ctx.scale

    @staticmethod
    def backward(ctx, g):
        z = torch.zeros_like(g[..., :1])
        gp = torch.cat([z, g], -1) - torch.cat([g, z], -1)
        return gp * ctx.scale, None, None


def instantaneous_frequency(phase, hop, rate, advance=None):
    """phase (..., F, T) in rad -> Hz (..., F, T - 1); advance (F,): expected phase step per hop"""
    return _InstFreq.apply(phase, hop, rate, advance)
