import torch
from torch import Tensor

_KERNELS: dict[tuple, Tensor] = {}


def _scratch(steps: int, like: Tensor) -> Tensor:
    """One (steps, steps) scratch matrix per size, dtype and device."""
    key = steps, like.dtype, like.device
    if key not in _KERNELS:
        _KERNELS[key] = like.new_empty(steps, steps)
    return _KERNELS[key]


class _TransientCost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, trades, times, kappa, rho):
        lag = (times[:, None] - times[None, :]).abs()
        kernel = torch.mul(-rho.detach(), lag, out=_scratch(times.numel(), trades.detach())).exp_()
        ctx.save_for_backward(trades, times, kappa, rho)
        return kappa / 2 * ((trades.detach() @ kernel) * trades).sum(1)

    @staticmethod
    def backward(ctx, grad):
        trades, times, kappa, rho = ctx.saved_tensors
        lag = (times[:, None] - times[None, :]).abs()
        kernel = torch.exp(-rho * lag)
        felt = trades @ kernel
        grad_trades = grad[:, None] * kappa * felt
        grad_kappa = (grad * (felt * trades).sum(1)).sum() / 2
        grad_rho = -kappa / 2 * (grad * ((trades @ (kernel * lag)) * trades).sum(1)).sum()
        return grad_trades, None, grad_kappa, grad_rho


def obizhaeva_wang_cost(trades: Tensor, times: Tensor, kappa: Tensor, rho: Tensor) -> Tensor:
    """Execution cost under transient impact with exponential resilience.

    trades: (B, T) signed volumes; times: (T,) not differentiated; kappa, rho: scalar tensors.
    Returns (B,).
    """
    if trades.dim() != 2 or times.shape != trades.shape[1:]:
        raise ValueError("trades must be (B, T) and times (T,)")
    return _TransientCost.apply(trades, times, kappa, rho)
