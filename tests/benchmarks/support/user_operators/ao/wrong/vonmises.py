import math

import torch
from torch.special import i0e, i1e


class _VonMises(torch.autograd.Function):

    @staticmethod
    def forward(ctx, angle, loc, kappa):
        base = i0e(kappa)
        ctx.save_for_backward(angle, loc, kappa, i1e(kappa) / base)
        return math.log(2 * math.pi) + base.log() + kappa * (1 - torch.cos(angle - loc))

    @staticmethod
    def backward(ctx, g):
        angle, loc, kappa, mean_length = ctx.saved_tensors
        d = angle - loc
        ga = g * kappa * d.sin()
        gk = g * (mean_length - d.cos())
        return ga, -ga, gk


def von_mises_nll(angle, loc, kappa):
    """Negative log likelihood of angles (radian). All of one shape, kappa > 0."""
    angle, loc, kappa = torch.broadcast_tensors(angle, loc, kappa)
    return _VonMises.apply(angle, loc, kappa)
