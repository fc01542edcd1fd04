import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class ZINB(torch.autograd.Function):
    """Elementwise negative log likelihood of a zero inflated negative binomial.

    x counts, mu > 0 mean, theta > 0 inverse dispersion, logit of the dropout probability; all (N, G)
    """

    @staticmethod
    def forward(ctx, x, mu, theta, logit):
        ctx.save_for_backward(x, mu, theta, logit)
        lt = torch.log(theta) - torch.log(theta + mu)
        nb = (torch.lgamma(x + theta) - torch.lgamma(theta) - torch.lgamma(x + 1)
              + theta * lt + x * (torch.log(mu) - torch.log(theta + mu)))
        zero = torch.logaddexp(F.logsigmoid(logit), F.logsigmoid(-logit) + theta * lt)
        return -torch.where(x == 0, zero, F.logsigmoid(-logit) + nb)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, mu, theta, logit = ctx.saved_tensors
        s = theta + mu
        lt = torch.log(theta) - torch.log(s)
        pi = torch.sigmoid(logit)
        nb0 = torch.exp(theta * lt)
        den = pi + (1 - pi) * nb0
        w = (1 - pi) * nb0 / den
        gmu = torch.where(x == 0, -w * theta / s, x / mu - (x + theta) / s)
        gth = torch.where(
            x == 0,
            w * (lt + 1 - theta / s),
            torch.digamma(x + theta) - torch.digamma(theta) + lt + 1 - (x + theta) / s,
        )
        glo = torch.where(x == 0, pi * (1 - pi) * (1 - nb0) / den, -pi)
        return None, -g * gmu, -g * gth, -g * glo
