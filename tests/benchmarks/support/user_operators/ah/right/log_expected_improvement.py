"""Numerically stable log expected improvement."""
import math

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_TAIL = -25.0


def _scaled_tail(u: Tensor):
    # phi(u) + u Phi(u) = phi(u) q (1 - 3 q + 15 q^2 - 105 q^3 + ...), q = u^-2
    q = u.clamp(max=_TAIL) ** -2
    return q, 1 - 3 * q + 15 * q**2 - 105 * q**3


def _log_h(u: Tensor) -> Tensor:
    upper = u.clamp(min=-1.0)
    phi = torch.exp(-0.5 * upper * upper - _LOG_SQRT_2PI)
    out = torch.log(phi + upper * torch.special.ndtr(upper))
    mid = u.clamp(_TAIL, -1.0)
    mills = _SQRT_HALF_PI * torch.special.erfcx(-mid / math.sqrt(2))
    out = torch.where(u < -1.0, -0.5 * u * u - _LOG_SQRT_2PI + torch.log1p(mid * mills), out)
    q, series = _scaled_tail(u)
    return torch.where(u < _TAIL, -0.5 * u * u - _LOG_SQRT_2PI + torch.log(q * series), out)


def _dlog_h(u: Tensor) -> Tensor:
    upper = u.clamp(min=-1.0)
    cdf = torch.special.ndtr(upper)
    phi = torch.exp(-0.5 * upper * upper - _LOG_SQRT_2PI)
    out = cdf / (phi + upper * cdf)
    mid = u.clamp(_TAIL, -1.0)
    mills = _SQRT_HALF_PI * torch.special.erfcx(-mid / math.sqrt(2))
    out = torch.where(u < -1.0, mills / (1 + mid * mills), out)
    q, series = _scaled_tail(u)
    return torch.where(u < _TAIL, -u * (1 - q + 3 * q**2 - 15 * q**3) / series, out)


class LogExpectedImprovement(torch.autograd.Function):
    """
    Args:
        mean: `b`-dim posterior means.
        sigma: `b`-dim posterior standard deviations, positive.
        best_f: best observed value, `b`-dim or a scalar tensor.
        maximize: whether larger is better.

    Returns:
        `b`-dim log(EI).
    """

    @staticmethod
    def forward(ctx, mean: Tensor, sigma: Tensor, best_f: Tensor, maximize: bool = True) -> Tensor:
        sign = 1.0 if maximize else -1.0
        u = sign * (mean - best_f) / sigma
        ctx.save_for_backward(u, sigma)
        ctx.sign = sign
        ctx.best_f_shape = best_f.shape
        return _log_h(u) + sigma.log()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: Tensor):
        u, sigma = ctx.saved_tensors
        slope = _dlog_h(u)
        grad_mean = grad_output * ctx.sign * slope / sigma
        grad_sigma = grad_output * (1 - u * slope) / sigma
        return grad_mean, grad_sigma, -grad_mean.sum_to_size(ctx.best_f_shape), None
