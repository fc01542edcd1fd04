import torch
from torch import Tensor


class _CVA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, exposure, hazard, discount, dt, recovery):
        survival = torch.exp(-(hazard * dt).cumsum(0))
        before = torch.cat([torch.ones_like(survival[:1]), survival[:-1]])
        ctx.save_for_backward(exposure, hazard, discount, dt)
        ctx.lgd = 1 - recovery
        epe = torch.relu(exposure).mean(0)
        return ctx.lgd * (discount * epe * (before - survival)).sum()

    @staticmethod
    def backward(ctx, grad):
        exposure, hazard, discount, dt = ctx.saved_tensors
        survival = torch.exp(-(hazard * dt).cumsum(0))
        before = torch.cat([torch.ones_like(survival[:1]), survival[:-1]])
        default = before - survival
        epe = torch.relu(exposure).mean(0)
        scale = grad * ctx.lgd
        grad_exposure = scale * discount * default * (exposure > 0) / exposure.size(0)
        cost = discount * epe
        grad_survival = torch.cat([cost[1:], torch.zeros_like(cost[:1])]) - cost
        tail = (grad_survival * survival).flip(0).cumsum(0).flip(0)
        return grad_exposure, -scale * dt * tail, scale * epe * default, None, None


def cva_charge(exposure: Tensor, hazard: Tensor, discount: Tensor, dt: Tensor, recovery: float = 0.4) -> Tensor:
    """Unilateral CVA from simulated exposures.

    Args:
        exposure: (paths, T) values of the netting set.
        hazard: (T,) hazard rates, constant over each period.
        discount: (T,) discount factors.
        dt: (T,) lengths of the periods (dates, not differentiated).
        recovery: recovery rate in [0, 1].
    """
    if not 0 <= recovery <= 1:
        raise ValueError("recovery must lie in [0, 1]")
    assert exposure.size(1) == hazard.numel() == discount.numel() == dt.numel()
    return _CVA.apply(exposure, hazard, discount, dt, recovery)
