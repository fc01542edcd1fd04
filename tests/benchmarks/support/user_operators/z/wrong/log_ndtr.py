import math

import torch

_C = 0.5 * math.log(2 * math.pi)


class LogNormalCDF(torch.autograd.Function):
    # probit likelihoods: log Phi(sign * x), sign a +1/-1 tensor or None

    @staticmethod
    def forward(ctx, x, sign=None):
        s = x if sign is None else sign * x
        out = torch.special.log_ndtr(s)
        ctx.save_for_backward(x, sign, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, sign, out = ctx.saved_tensors
        mills = torch.exp(-0.5 * x * x - _C) / out.exp()
        g = g * mills
        return (g if sign is None else g * sign), None
