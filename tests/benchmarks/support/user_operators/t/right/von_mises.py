import math

import torch


class VonMisesLogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, loc, concentration):
        ctx.save_for_backward(x, loc, concentration)
        log_i0 = torch.log(torch.special.i0e(concentration)) + concentration
        return concentration * torch.cos(x - loc) - math.log(2 * math.pi) - log_i0

    @staticmethod
    def backward(ctx, grad):
        x, loc, kappa = ctx.saved_tensors
        s = kappa * torch.sin(x - loc) * grad
        ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        gk = grad * (torch.cos(x - loc) - ratio)
        return (-s).sum_to_size(x.shape), s.sum_to_size(loc.shape), gk.sum_to_size(kappa.shape)
