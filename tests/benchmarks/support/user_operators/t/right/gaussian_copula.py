import math

import torch


class GaussianCopulaLogDensity(torch.autograd.Function):
    """log c(u, v; rho) for u, v in (0, 1) and the correlation rho in (-1, 1), elementwise."""

    @staticmethod
    def forward(u, v, rho):
        x, y = torch.special.ndtri(u), torch.special.ndtri(v)
        s = 1 - rho**2
        return -0.5 * s.log() - (rho**2 * (x**2 + y**2) - 2 * rho * x * y) / (2 * s)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        u, v, rho = ctx.saved_tensors
        x, y = torch.special.ndtri(u), torch.special.ndtri(v)
        s = 1 - rho**2
        jac = lambda t: math.sqrt(2 * math.pi) * torch.exp(t**2 / 2)
        gx = -(rho**2 * x - rho * y) / s
        gy = -(rho**2 * y - rho * x) / s
        grho = rho / s + ((1 + rho**2) * x * y - rho * (x**2 + y**2)) / s**2
        return grad * gx * jac(x), grad * gy * jac(y), grad * grho
