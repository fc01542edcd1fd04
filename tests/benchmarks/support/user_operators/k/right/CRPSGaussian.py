import math

import torch
from torch.autograd import Function

SQRT2 = math.sqrt(2.0)
INV_SQRT_PI = 1.0 / math.sqrt(math.pi)


class CRPSGaussian(Function):
    """Continuous ranked probability score of N(mu, sigma^2) at y, elementwise.

    mu, sigma, y have one shape, sigma > 0 (Gneiting et al., 2005)
    """

    @staticmethod
    def forward(ctx, mu, sigma, y):
        z = (y - mu) / sigma
        ctx.save_for_backward(mu, sigma, y)
        pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return sigma * (z * torch.erf(z / SQRT2) + 2 * pdf - INV_SQRT_PI)

    @staticmethod
    def backward(ctx, grad):
        mu, sigma, y = ctx.saved_tensors
        z = (y - mu) / sigma
        pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        g_y = grad * torch.erf(z / SQRT2)
        g_sigma = grad * (2 * pdf - INV_SQRT_PI)
        return -g_y, g_sigma, g_y
