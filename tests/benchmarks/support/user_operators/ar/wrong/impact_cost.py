import torch
from torch.autograd.function import once_differentiable


class ImpactCost(torch.autograd.Function):
    """Execution cost of a schedule, Almgren et al.

    trades (T, A) signed volume per slot (zero is fine), sigma (A,), adv (A,) > 0,
    eta, gamma scalar tensors. Returns the cost per asset (A,):
    sum_t eta * sigma * (|v|/adv)^expo * |v|  +  gamma/2 * sigma * (sum_t v)^2 / adv
    """

    @staticmethod
    def forward(ctx, trades, sigma, adv, eta, gamma, expo=0.6):
        ctx.save_for_backward(trades, sigma, adv, eta, gamma)
        ctx.expo = expo
        v = trades.abs()
        temp = eta * sigma * ((v / adv) ** expo * v).sum(0)
        return temp + 0.5 * gamma * sigma * trades.sum(0) ** 2 / adv

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        trades, sigma, adv, eta, gamma = ctx.saved_tensors
        a = ctx.expo
        v = trades.abs()
        unit = (v / adv) ** a
        rate = g * eta * sigma * (1 + a) * unit * v / trades
        net = trades.sum(0)
        d_trades = rate + g * gamma * sigma * net / adv
        shape = (unit * v).sum(0)
        perm = 0.5 * net ** 2 / adv
        d_sigma = g * (eta * shape + gamma * perm)
        d_adv = -g * sigma * (a * eta * shape + gamma * perm) / adv
        d_eta = (g * sigma * shape).sum().reshape(eta.shape)
        d_gamma = (g * sigma * perm).sum().reshape(gamma.shape)
        return d_trades, d_sigma, d_adv, d_eta, d_gamma, None
