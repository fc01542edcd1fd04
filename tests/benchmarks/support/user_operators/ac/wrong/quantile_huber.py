import torch
from torch import Tensor


@torch.library.custom_op("distrl::quantile_huber", mutates_args=())
def quantile_huber(pred: Tensor, target: Tensor, taus: Tensor, kappa: float) -> Tensor:
    """pred (B, N), target (B, M), taus (B, N); per-sample loss (B,)"""
    u = target[:, None, :] - pred[:, :, None]
    a = u.abs()
    huber = torch.where(a <= kappa, 0.5 * u * u, kappa * (a - 0.5 * kappa)) / kappa
    weight = (taus[:, :, None] - (u < 0).to(u.dtype)).abs()
    return (weight * huber).mean(dim=2).sum(dim=1)


@quantile_huber.register_fake
def _(pred, target, taus, kappa):
    return pred.new_empty(pred.shape[0])


def _setup(ctx, inputs, output):
    pred, target, taus, kappa = inputs
    ctx.save_for_backward(pred, target, taus)
    ctx.kappa = kappa


def _backward(ctx, grad):
    pred, target, taus = ctx.saved_tensors
    kappa = ctx.kappa
    u = target[:, None, :] - pred[:, :, None]
    neg = (u < 0).to(u.dtype)
    side = taus[:, :, None] - neg
    d_u = side.abs() * u.clamp(-kappa, kappa) / kappa * grad[:, None, None]
    g_taus = None
    if ctx.needs_input_grad[2]:
        a = u.abs()
        huber = torch.where(a <= kappa, 0.5 * u * u, kappa * (a - 0.5 * kappa)) / kappa
        g_taus = (side.sign() * huber).mean(2) * grad[:, None]
    return -d_u.mean(2), d_u.mean(1), g_taus, None


quantile_huber.register_autograd(_backward, setup_context=_setup)
