import torch


class QuantileHuberLoss(torch.autograd.Function):
    """QR-DQN loss.

    quantiles: (B, N) current, targets: (B, M), taus: (N,) midpoints, kappa: huber threshold (> 0).
    Sum over N, mean over M and over the batch.
    """

    @staticmethod
    def forward(quantiles, targets, taus, kappa=1.0):
        if quantiles.dim() != 2 or targets.dim() != 2 or quantiles.shape[0] != targets.shape[0] \
                or taus.shape != quantiles.shape[1:]:
            raise ValueError("expected quantiles (B, N), targets (B, M) and taus (N,)")
        delta = targets[:, None, :] - quantiles[:, :, None]
        abs_delta = delta.abs()
        huber = torch.where(abs_delta <= kappa, 0.5 * delta ** 2, kappa * (abs_delta - 0.5 * kappa))
        weight = (taus[None, :, None] - (delta < 0).to(delta.dtype)).abs()
        return (weight * huber / kappa).sum(1).mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        quantiles, targets, taus, kappa = inputs
        ctx.save_for_backward(quantiles, targets, taus)
        ctx.kappa = kappa

    @staticmethod
    def backward(ctx, grad_loss):
        quantiles, targets, taus = ctx.saved_tensors
        kappa = ctx.kappa
        delta = targets[:, None, :] - quantiles[:, :, None]
        abs_delta = delta.abs()
        signed = taus[None, :, None] - (delta < 0).to(delta.dtype)
        scale = grad_loss / (targets.shape[0] * targets.shape[1])
        d_delta = scale * signed.abs() * delta.clamp(-kappa, kappa) / kappa
        huber = torch.where(abs_delta <= kappa, 0.5 * delta ** 2, kappa * (abs_delta - 0.5 * kappa))
        d_taus = (scale * signed.sign() * huber / kappa).sum((0, 2))
        return -d_delta.sum(2), d_delta.sum(1), d_taus, None
