import torch
from torch import Tensor


def _parzen(x: float) -> float:
    return 1 - 6 * x * x + 6 * x**3 if x <= 0.5 else 2 * (1 - x) ** 3


class _RealizedKernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, returns, bandwidth):
        ctx.save_for_backward(returns)
        ctx.bandwidth = bandwidth
        total = returns.square().sum(-1)
        for lag in range(1, bandwidth + 1):
            gamma = (returns[..., lag:] * returns[..., :-lag]).sum(-1)
            total = total + 2 * _parzen(lag / (bandwidth + 1)) * gamma
        return total

    @staticmethod
    def backward(ctx, grad):
        (returns,) = ctx.saved_tensors
        slope = 2 * returns
        for lag in range(1, ctx.bandwidth + 1):
            weight = 2 * _parzen(lag / (ctx.bandwidth + 1))
            slope[..., lag:] += weight * returns[..., :-lag]
            slope[..., :-lag] += weight * slope[..., lag:] / 2
        return grad[..., None] * slope, None


def realized_kernel(returns: Tensor, bandwidth: int) -> Tensor:
    """Realized kernel of intraday returns (..., T) with Parzen weights up to lag ``bandwidth``."""
    if not 0 <= bandwidth < returns.size(-1):
        raise ValueError(f"bandwidth {bandwidth} does not fit {returns.size(-1)} returns")
    return _RealizedKernel.apply(returns, bandwidth)
