import math
import torch

LN2 = math.log(2.0)


def phi(u):
    return torch.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)


def Phi(u):
    return 0.5 * torch.erfc(-u / math.sqrt(2.0))


class GaussianBits(torch.autograd.Function):
    """bits of an integer symbol y under N(mu, exp(log_s)) integrated over [y - .5, y + .5]"""

    @staticmethod
    def _mass(y, mu, log_s):
        s = torch.exp(log_s)
        # work in the lower tail, the upper one is symmetric
        d = -(y - mu).abs()
        hi, lo = (d + 0.5) / s, (d - 0.5) / s
        return s, hi, lo, Phi(hi) - Phi(lo)

    @staticmethod
    def forward(ctx, y, mu, log_s):
        ctx.save_for_backward(y, mu, log_s)
        s, hi, lo, mass = GaussianBits._mass(y, mu, log_s)
        return -torch.log(mass) / LN2

    @staticmethod
    def backward(ctx, g):
        y, mu, log_s = ctx.saved_tensors
        s, hi, lo, mass = GaussianBits._mass(y, mu, log_s)
        k = -g / (LN2 * mass)
        gd = k * (phi(hi) - phi(lo)) / s
        gy = -gd * torch.sign(y - mu)
        gls = k * (lo * phi(lo) - hi * phi(hi))
        return gy, -gy, gls
