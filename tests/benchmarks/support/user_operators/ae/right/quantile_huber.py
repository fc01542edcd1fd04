import torch
from torch.autograd.function import once_differentiable


class QuantileHuberLoss(torch.autograd.Function):
    """QR-DQN's loss.

    quantiles: (B, N) predictions, target: (B, M) samples of the target return, taus: (B, N) or (N,).
    Mean over samples, sum over quantiles, mean over the batch (with weights of prioritised replay).
    """

    @staticmethod
    def forward(ctx, quantiles, target, taus, weights=None, kappa=1.0):
        td = target[:, None, :] - quantiles[:, :, None]
        small = td.abs() <= kappa
        huber = torch.where(small, 0.5 * td * td, kappa * (td.abs() - 0.5 * kappa))
        tau = taus.expand_as(quantiles)[:, :, None]
        asym = (tau - (td < 0).to(td.dtype)).abs()
        per_item = (asym * huber / kappa).mean(2).sum(1)
        if weights is not None:
            per_item = per_item * weights
        ctx.save_for_backward(td, asym, weights)
        ctx.kappa = kappa
        return per_item.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        td, asym, weights = ctx.saved_tensors
        b, _, m = td.shape
        slope = td.clamp(-ctx.kappa, ctx.kappa) / ctx.kappa
        d = g * asym * slope / (b * m)
        if weights is not None:
            d = d * weights[:, None, None]
        g_target = d.sum(1) if ctx.needs_input_grad[1] else None
        return -d.sum(2), g_target, None, None, None
