import math

import torch


class Boys(torch.autograd.Function):
    """Boys function ``F_n(x)``, the integral of ``t^(2n) exp(-x t^2)`` over t in [0, 1].

    Args:
        x: not negative, any shape; zero is allowed.
        n: order, a non-negative int.
    """

    @staticmethod
    def forward(ctx, x, n=0):
        ctx.save_for_backward(x)
        ctx.n = n
        small = x.clamp(max=30.0)
        term = torch.full_like(x, 1.0 / (2 * n + 1))
        total = term.clone()
        for k in range(1, 160):
            term = term * 2 * small / (2 * n + 2 * k + 1)
            total = total + term
        series = torch.exp(-small) * total
        far = math.gamma(n + 0.5) / (2 * x.clamp(min=30.0) ** (n + 0.5))
        return torch.where(x > 30.0, far, series)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        n = ctx.n
        return -grad * ((2 * n + 1) * Boys.apply(x, n) - torch.exp(-x)) / (2 * x), None
