import math

import torch


class _MeanLength(torch.autograd.Function):
    """A_d(kappa) = I_{d/2}(kappa) / I_{d/2-1}(kappa)."""

    @staticmethod
    def forward(ctx, kappa, d):
        if d == 2:
            a = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        else:
            a = 1 / torch.tanh(kappa) - 1 / kappa
        ctx.save_for_backward(kappa, a)
        ctx.d = d
        return a

    @staticmethod
    def backward(ctx, g):
        kappa, a = ctx.saved_tensors
        return g * (1 - a * a - ctx.d * a / kappa), None


class VMFLogNormalizer(torch.autograd.Function):
    """log C_d(kappa) of the von Mises-Fisher density on the circle (d = 2) or the sphere (d = 3); kappa > 0."""

    @staticmethod
    def forward(ctx, kappa, d):
        if d not in (2, 3):
            raise ValueError("d must be 2 or 3")
        ctx.save_for_backward(kappa)
        ctx.d = d
        if d == 2:
            return -math.log(2 * math.pi) - kappa - torch.special.i0e(kappa).log()
        return kappa.log() - math.log(2 * math.pi) - kappa - torch.log1p(-torch.exp(-2 * kappa))

    @staticmethod
    def backward(ctx, g):
        kappa, = ctx.saved_tensors
        return -g * _MeanLength.apply(kappa, ctx.d), None
