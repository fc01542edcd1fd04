import torch
from torch.autograd import Function


class _QRLoss(Function):
    """loss = sum_b w_b sum_i mean_j |tau_i - [u<0]| huber(u)/kappa, u = target_j - theta_i"""

    @staticmethod
    def forward(ctx, theta, target, taus, weights, kappa):
        u = target[:, None, :] - theta[:, :, None]
        h = torch.where(u.abs() <= kappa, 0.5 * u * u, kappa * (u.abs() - 0.5 * kappa))
        asym = (taus[:, None] - (u < 0).to(u.dtype)).abs()
        per = (asym * h / kappa).mean(2).sum(1)
        ctx.save_for_backward(theta, target, taus, weights)
        ctx.kappa = kappa
        return (weights * per).sum() / theta.shape[0]

    @staticmethod
    def backward(ctx, grad):
        theta, target, taus, weights = ctx.saved_tensors
        kappa = ctx.kappa
        u = target[:, None, :] - theta[:, :, None]
        sign = (u < 0).to(u.dtype)
        asym = (taus[:, None] - sign).abs() / (kappa * target.shape[1])
        w = weights * (grad / theta.shape[0])
        du = w[:, None, None] * asym * u.clamp(-kappa, kappa)
        g_theta = -du.sum(2)
        g_target = du.sum(1)
        g_w = None
        if ctx.needs_input_grad[3]:
            h = torch.where(u.abs() <= kappa, 0.5 * u * u, kappa * (u.abs() - 0.5 * kappa))
            g_w = (asym * h).sum((1, 2)) * grad / theta.shape[0]
        return g_theta, g_target, None, g_w, None


def quantile_huber_loss(theta, target, weights=None, kappa=1.0):
    """QR-DQN. theta (B, N) at the midpoints of N equal bins, target (B, M), weights (B,) from the replay buffer."""
    N = theta.shape[1]
    taus = (torch.arange(N, device=theta.device, dtype=theta.dtype) + 0.5) / N
    if weights is None:
        weights = theta.new_ones(theta.shape[0])
    return _QRLoss.apply(theta, target, taus, weights, kappa)
