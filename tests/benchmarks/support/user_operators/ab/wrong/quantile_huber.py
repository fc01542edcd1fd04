import torch
from torch.autograd.function import once_differentiable


class QuantileHuber(torch.autograd.Function):
    """QR-DQN's loss: theta (b, n) predicted quantiles, target (b, m), taus (n,) or None for the midpoints."""

    @staticmethod
    def forward(ctx, theta, target, taus=None, kappa=1.0):
        n = theta.shape[1]
        if taus is None:
            taus = (torch.arange(n, device=theta.device, dtype=theta.dtype) + 0.5) / n
        delta = target[:, None, :] - theta[:, :, None]
        size = delta.abs()
        huber = torch.where(size <= kappa, 0.5 * delta ** 2, kappa * (size - 0.5 * kappa))
        tilt = (taus[:, None] - (delta < 0).to(theta.dtype)).abs()
        ctx.save_for_backward(delta, tilt)
        ctx.kappa = kappa
        return (tilt * huber / kappa).mean(2).sum(1).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        delta, tilt = ctx.saved_tensors
        b, n, m = delta.shape
        slope = torch.where(delta.abs() <= ctx.kappa, delta, delta.sign())
        d = g * tilt * slope / (ctx.kappa * b * m)
        return (-d.sum(2) if ctx.needs_input_grad[0] else None,
                d.sum(1) if ctx.needs_input_grad[1] else None, None, None)
