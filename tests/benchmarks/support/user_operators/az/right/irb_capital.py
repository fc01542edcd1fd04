import math

import torch
from torch.autograd import Function
from torch.special import ndtr, ndtri

_CEILING = -math.expm1(-50.0)


def _correlation(pd):
    w = -torch.expm1(-50 * pd) / _CEILING
    return 0.12 * w + 0.24 * (1 - w)


class IRBCapital(Function):
    """Capital requirement of a corporate exposure (Basel IRB, before the maturity adjustment).

    pd: probability of default in (0, 1); lgd: loss given default; the two broadcast.
    confidence: confidence level.
    """

    @staticmethod
    def forward(ctx, pd, lgd, confidence=0.999):
        rho = _correlation(pd)
        z = float(ndtri(torch.tensor(confidence, dtype=torch.float64)))
        ctx.save_for_backward(pd, lgd)
        ctx.z = z
        stressed = ndtr((ndtri(pd) + rho.sqrt() * z) / (1 - rho).sqrt())
        return lgd * (stressed - pd)

    @staticmethod
    def backward(ctx, grad):
        pd, lgd = ctx.saved_tensors
        z = ctx.z
        rho = _correlation(pd)
        quantile = ndtri(pd)
        arg = (quantile + rho.sqrt() * z) / (1 - rho).sqrt()
        root = math.sqrt(2 * math.pi)
        density = torch.exp(-arg**2 / 2) / root
        d_quantile = root * torch.exp(quantile**2 / 2)
        d_rho = -0.12 * 50 * torch.exp(-50 * pd) / _CEILING
        d_arg = d_quantile / (1 - rho).sqrt() + d_rho * (z / (2 * rho.sqrt() * (1 - rho).sqrt()) + arg / (2 * (1 - rho)))
        grad_pd = (grad * lgd * (density * d_arg - 1)).sum_to_size(pd.shape)
        grad_lgd = (grad * (ndtr(arg) - pd)).sum_to_size(lgd.shape)
        return grad_pd, grad_lgd, None
