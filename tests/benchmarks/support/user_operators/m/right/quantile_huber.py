import torch


class QuantileHuberLoss(torch.autograd.Function):
    """QR-DQN loss.

    Args:
        pred: (B, N) quantile estimates.
        target: (B, M) target samples.
        taus: (N,) quantile midpoints.
        kappa: Huber threshold.
    """

    @staticmethod
    def forward(ctx, pred, target, taus, kappa=1.0):
        u = target.unsqueeze(1) - pred.unsqueeze(2)  # (B, N, M)
        ctx.save_for_backward(u, taus)
        ctx.kappa = kappa
        abs_u = u.abs()
        huber = torch.where(abs_u <= kappa, 0.5 * u * u, kappa * (abs_u - 0.5 * kappa))
        weight = (taus.view(1, -1, 1) - (u < 0).to(u.dtype)).abs()
        return (weight * huber / kappa).mean(2).sum(1).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        u, taus = ctx.saved_tensors
        kappa = ctx.kappa
        batch, _, m = u.shape
        weight = (taus.view(1, -1, 1) - (u < 0).to(u.dtype)).abs()
        du = weight * u.clamp(-kappa, kappa) / kappa
        du = du * grad_output / (batch * m)
        return -du.sum(2), du.sum(1), None, None
