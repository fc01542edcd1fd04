import math
import torch


class ContBernoulliLogNorm(torch.autograd.Function):
    """log C(lambda) of the continuous Bernoulli (Loaiza-Ganem & Cunningham, 2019).

    C = 2 atanh(1 - 2 lambda) / (1 - 2 lambda), a Taylor expansion around 1/2.
    """

    CUT = 5e-3

    @staticmethod
    def forward(ctx, lam):
        ctx.save_for_backward(lam)
        e = lam - 0.5
        near = e.abs() < ContBernoulliLogNorm.CUT
        y = torch.where(near, torch.full_like(lam, 0.5), 1 - 2 * lam)
        taylor = math.log(2.0) + 4.0 / 3.0 * e ** 2 + 104.0 / 45.0 * e ** 4
        return torch.where(near, taylor, torch.log(2 * torch.atanh(y) / y))

    @staticmethod
    def backward(ctx, g):
        lam, = ctx.saved_tensors
        y = 1 - 2 * lam
        d = -2 * (1 / (torch.atanh(y) * (1 - y ** 2)) - 1 / y)
        return g * d
