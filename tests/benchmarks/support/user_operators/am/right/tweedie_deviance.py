import torch
from torch.autograd import Function


def unit_deviance(eta, y, p):
    mu = eta.exp()
    if p == 1:
        return 2 * (torch.xlogy(y, y) - y * eta - y + mu)
    if p == 2:
        return 2 * (y / mu - 1 - y.log() + eta)
    return 2 * (y ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p))


class TweedieDeviance(Function):
    """unit Tweedie deviance with log link, weighted

    eta (N,) log of the mean, y (N,) observed, weight (N,) exposure or None
    power: 0 normal, 1 Poisson, (1, 2) compound, 2 gamma (y > 0), 3 inverse Gaussian (y > 0)
    """

    @staticmethod
    def forward(ctx, eta, y, weight=None, power=1.5):
        ctx.power = power
        ctx.save_for_backward(eta, y, weight)
        dev = unit_deviance(eta, y, power)
        return dev if weight is None else weight * dev

    @staticmethod
    def backward(ctx, g):
        eta, y, weight = ctx.saved_tensors
        g_weight = None
        slope = 2 * (eta.exp() - y) * torch.exp(eta * (1 - ctx.power))
        if weight is not None:
            g_weight = g * unit_deviance(eta, y, ctx.power)
            g = g * weight
        return g * slope, None, g_weight, None
