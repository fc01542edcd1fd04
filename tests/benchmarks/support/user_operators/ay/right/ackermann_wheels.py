import math

import torch
from torch.autograd import Function


class _Ackermann(Function):
    @staticmethod
    def forward(ctx, kappa, wheelbase, track, degrees):
        ctx.save_for_backward(kappa)
        ctx.geom = wheelbase, track, degrees
        c = 0.5 * track
        left = torch.atan(wheelbase * kappa / (1 - c * kappa))
        right = torch.atan(wheelbase * kappa / (1 + c * kappa))
        out = torch.stack([left, right], -1)
        return torch.rad2deg(out) if degrees else out

    @staticmethod
    def backward(ctx, g):
        kappa, = ctx.saved_tensors
        L, track, degrees = ctx.geom
        c = 0.5 * track
        dl = L / ((1 - c * kappa) ** 2 + (L * kappa) ** 2)
        dr = L / ((1 + c * kappa) ** 2 + (L * kappa) ** 2)
        gk = g[..., 0] * dl + g[..., 1] * dr
        if degrees:
            gk = gk * (180 / math.pi)
        return gk, None, None, None


def ackermann_wheels(kappa, wheelbase, track, degrees=False):
    return _Ackermann.apply(kappa, wheelbase, track, degrees)
