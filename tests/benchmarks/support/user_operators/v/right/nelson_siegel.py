import torch


def _loading(x):
    """(1 - exp(-x)) / x and its derivative"""
    small = x < 1e-3
    xs = torch.where(small, torch.ones_like(x), x)
    L = torch.where(small, 1 - x / 2 + x * x / 6 - x ** 3 / 24, -torch.expm1(-xs) / xs)
    dL = torch.where(small, -0.5 + x / 3 - x * x / 8 + x ** 3 / 30, (torch.exp(-xs) + torch.expm1(-xs) / xs) / xs)
    return L, dL


class NelsonSiegel(torch.autograd.Function):
    """Zero rates at maturities t >= 0 (M,) from level, slope, curvature (3,) and decay tau > 0."""

    @staticmethod
    def forward(ctx, t, beta, tau):
        ctx.save_for_backward(t, beta, tau)
        x = t / tau
        L, _ = _loading(x)
        return beta[0] + beta[1] * L + beta[2] * (L - torch.exp(-x))

    @staticmethod
    def backward(ctx, g):
        t, beta, tau = ctx.saved_tensors
        x = t / tau
        L, dL = _loading(x)
        e = torch.exp(-x)
        gbeta = torch.stack([g.sum(), (g * L).sum(), (g * (L - e)).sum()])
        gx = g * ((beta[1] + beta[2]) * dL + beta[2] * e)
        return gx / tau, gbeta, -(gx * x).sum().view_as(tau) / tau
