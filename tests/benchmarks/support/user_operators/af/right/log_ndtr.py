import math

import torch

SQRT_2_PI = math.sqrt(2 / math.pi)


class _LogNdtr(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return torch.special.log_ndtr(z)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        # phi(z) / Phi(z)
        neg = z.clamp(max=0)
        pos = z.clamp(min=0)
        lower = SQRT_2_PI / torch.special.erfcx(-neg / math.sqrt(2))
        upper = torch.exp(-0.5 * pos * pos) / math.sqrt(2 * math.pi) / torch.special.ndtr(pos)
        return grad * torch.where(z < 0, lower, upper)


def lognormal_logcdf(log_x, loc, scale, survival=False):
    """log P(X <= x), or log P(X > x), of a log-normal variable at log x"""
    z = (log_x - loc) / scale
    return _LogNdtr.apply(-z if survival else z)
