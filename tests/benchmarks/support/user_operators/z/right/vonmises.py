import math

import torch
from torch.special import i0e, i1e


class VonMisesLogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, loc, kappa):
        scaled = i0e(kappa)
        ctx.save_for_backward(x, loc, kappa)
        return kappa * (torch.cos(x - loc) - 1) - math.log(2 * math.pi) - scaled.log()

    @staticmethod
    def backward(ctx, g):
        x, loc, kappa = ctx.saved_tensors
        d = x - loc
        gx = -g * kappa * d.sin()
        ratio = i1e(kappa) / i0e(kappa)
        return gx, -gx, g * (d.cos() - ratio)
