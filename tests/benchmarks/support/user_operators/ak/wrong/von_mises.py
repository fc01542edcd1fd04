import math

import torch


class VonMisesLogProb(torch.autograd.Function):
    """kappa cos(x - loc) - log(2 pi I0(kappa)); the three broadcast against each other."""

    @staticmethod
    def forward(ctx, x, loc, kappa):
        ctx.save_for_backward(x, loc, kappa)
        log_i0 = torch.special.i0e(kappa).log() + kappa
        return kappa * torch.cos(x - loc) - math.log(2 * math.pi) - log_i0

    @staticmethod
    def backward(ctx, g):
        x, loc, kappa = ctx.saved_tensors
        gx = -g * kappa * torch.sin(x - loc)
        ratio = torch.special.i1e(kappa) / torch.special.i0(kappa)
        gk = g * (torch.cos(x - loc) - ratio)
        return gx.sum_to_size(x.shape), -gx.sum_to_size(loc.shape), gk.sum_to_size(kappa.shape)
