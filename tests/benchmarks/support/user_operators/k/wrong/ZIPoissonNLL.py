"""Zero-inflated Poisson likelihood for count data with holes."""
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ZIPoissonNLL(Function):
    """Mean negative log likelihood over the observed entries.

    Args:
        log_rate: log of the Poisson rate
        logit: log odds of a structural zero, same shape
        counts: int64, same shape; entries equal to `missing` are left out
        missing: the code of a missing entry, a negative number

    At least one entry must be observed.
    """

    @staticmethod
    def forward(ctx, log_rate: Tensor, logit: Tensor, counts: Tensor, missing: int = -1) -> Tensor:
        if missing >= 0:
            raise ValueError("missing must be negative")
        seen = counts != missing
        k = counts.clamp(min=0).to(log_rate.dtype)
        rate = log_rate.exp()
        at_zero = -torch.logaddexp(logit, -rate)
        above = rate - k * log_rate + torch.lgamma(k + 1)
        nll = F.softplus(logit) + torch.where(k == 0, at_zero, above)
        ctx.save_for_backward(log_rate, logit, counts)
        ctx.missing = missing
        return nll[seen].mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        log_rate, logit, counts = ctx.saved_tensors
        seen = counts != -1
        k = counts.clamp(min=0).to(log_rate.dtype)
        rate = log_rate.exp()
        w = torch.sigmoid(logit + rate)
        zero = k == 0
        g_rate = torch.where(zero, (1 - w) * rate, rate - k)
        g_logit = torch.sigmoid(logit) - torch.where(zero, w, torch.zeros_like(w))
        scale = grad / seen.sum() * seen
        return g_rate * scale, g_logit * scale, None, None
