import math

import torch


class CRPSGaussian(torch.autograd.Function):
    """Closed form CRPS of N(mu, sigma^2) at an observation; all of one shape."""

    @staticmethod
    def forward(ctx, mu, sigma, obs):
        z = (obs - mu) / sigma
        cdf = 0.5 * (1 + torch.erf(z / math.sqrt(2)))
        pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        ctx.save_for_backward(cdf, pdf)
        return sigma * (z * (2 * cdf - 1) + 2 * pdf - 1 / math.sqrt(math.pi))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        cdf, pdf = ctx.saved_tensors
        grad_mu = -(2 * cdf - 1) * grad_output
        grad_sigma = (2 * pdf - 1 / math.sqrt(math.pi)) * grad_output
        return grad_mu, grad_sigma, None
