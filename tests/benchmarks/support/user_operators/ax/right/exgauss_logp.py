import math

import torch


class ExGaussLogProb(torch.autograd.Function):
    """Log density of the exponentially modified Gaussian, as used for reaction times.

    Args:
        x: data, any shape.
        mu, sigma, tau: mean and deviation of the normal and mean of the exponential part,
            broadcastable with x; the last two positive.
    """

    @staticmethod
    def forward(ctx, x, mu, sigma, tau):
        ctx.save_for_backward(x, mu, sigma, tau)
        d = x - mu
        return sigma**2 / (2 * tau**2) - d / tau - tau.log() + torch.special.log_ndtr(d / sigma - sigma / tau)

    @staticmethod
    def backward(ctx, grad):
        x, mu, sigma, tau = ctx.saved_tensors
        d = x - mu
        z = d / sigma - sigma / tau
        mills = torch.exp(-(z**2) / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(z))
        g_x = grad * (mills / sigma - 1 / tau)
        g_sigma = grad * (sigma / tau**2 - mills * (d / sigma**2 + 1 / tau))
        g_tau = grad * (d / tau**2 - 1 / tau - sigma**2 / tau**3 + mills * sigma / tau**2)
        return (
            g_x.sum_to_size(x.shape),
            -g_x.sum_to_size(mu.shape),
            g_sigma.sum_to_size(sigma.shape),
            g_tau.sum_to_size(tau.shape),
        )
