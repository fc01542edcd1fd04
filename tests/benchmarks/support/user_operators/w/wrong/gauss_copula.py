import math

import torch


class GaussianCopula(torch.autograd.Function):
    """Log density of the bivariate Gaussian copula; u, v in (0, 1), |rho| < 1, all of one shape."""

    @staticmethod
    def forward(ctx, u, v, rho):
        ctx.save_for_backward(u, v, rho)
        x, y = torch.special.ndtri(u), torch.special.ndtri(v)
        D = 1 - rho**2
        A = rho**2 * (x * x + y * y) - 2 * rho * x * y
        return -0.5 * torch.log(D) - A / (2 * D)

    @staticmethod
    def backward(ctx, g):
        u, v, rho = ctx.saved_tensors
        x, y = torch.special.ndtri(u), torch.special.ndtri(v)
        D = 1 - rho**2
        A = rho**2 * (x * x + y * y) - 2 * rho * x * y
        c = math.sqrt(2 * math.pi)
        gu = g * rho * (y - rho * x) / D * c * torch.exp(x * x / 2)
        gv = g * rho * (x - rho * y) / D * c * torch.exp(x * x / 2)
        gr = g * (rho - rho * (x * x + y * y) + x * y - A * rho / D) / D
        return gu, gv, gr
