"""Loss for angles."""
import math

import torch
from torch.autograd import Function


class VonMisesNLL(Function):

    @staticmethod
    def forward(ctx, theta, mu, kappa):
        ctx.save_for_backward(theta, mu, kappa)
        log_i0 = torch.log(torch.special.i0e(kappa)) + kappa.abs()
        return math.log(2 * math.pi) + log_i0 - kappa * torch.cos(theta - mu)

    @staticmethod
    def backward(ctx, g):
        theta, mu, kappa = ctx.saved_tensors
        delta = theta - mu
        d_theta = g * kappa * torch.sin(delta)
        ratio = torch.special.i1e(kappa) / torch.special.i0(kappa)
        d_kappa = g * (ratio - torch.cos(delta))
        return d_theta, -d_theta, d_kappa


def von_mises_nll(theta, mu, kappa):
    return VonMisesNLL.apply(theta, mu, kappa).mean()
