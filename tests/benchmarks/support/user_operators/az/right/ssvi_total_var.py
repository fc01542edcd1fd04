import torch
from torch import Tensor


class _SSVI(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k, theta, rho, eta, gamma):
        phi = eta * theta ** (-gamma)
        inner = phi * k + rho
        ctx.save_for_backward(k, theta, rho, eta)
        ctx.gamma = gamma
        return theta / 2 * (1 + rho * phi * k + (inner**2 + 1 - rho**2).sqrt())

    @staticmethod
    def backward(ctx, grad):
        k, theta, rho, eta = ctx.saved_tensors
        phi = eta * theta ** (-ctx.gamma)
        inner = phi * k + rho
        root = (inner**2 + 1 - rho**2).sqrt()
        half = grad * theta / 2
        g_phi = half * k * (rho + inner / root)
        g_k = half * phi * (rho + inner / root)
        g_rho = half * phi * k * (1 + 1 / root)
        g_theta = grad / 2 * (1 + rho * phi * k + root) - g_phi * ctx.gamma * phi / theta
        g_eta = g_phi * theta ** (-ctx.gamma)
        return (
            g_k.sum_to_size(k.shape),
            g_theta.sum_to_size(theta.shape),
            g_rho.sum_to_size(rho.shape),
            g_eta.sum_to_size(eta.shape),
            None,
        )


def ssvi_total_var(k: Tensor, theta: Tensor, rho: Tensor, eta: Tensor, gamma: float = 0.5) -> Tensor:
    """SSVI total variance with the power law phi = eta * theta ** -gamma.

    k: log-moneyness; theta: at-the-money total variance (positive); rho in (-1, 1); eta.
    The tensors broadcast, e.g. k (1, K), theta (T, 1), rho and eta scalars.
    """
    return _SSVI.apply(k, theta, rho, eta, gamma)
