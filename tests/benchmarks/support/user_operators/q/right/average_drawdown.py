import torch


class AverageDrawdown(torch.autograd.Function):
    """mean over time of 1 - value / running peak; wealth (B, T) > 0"""

    @staticmethod
    def forward(ctx, wealth):
        peak, when = wealth.cummax(1)
        ctx.save_for_backward(wealth, when)
        return (1 - wealth / peak).mean(1)

    @staticmethod
    def backward(ctx, g):
        wealth, when = ctx.saved_tensors
        peak = wealth.gather(1, when)
        g = g[:, None] / wealth.shape[1]
        g_peak = g * wealth / peak ** 2
        return torch.zeros_like(wealth).scatter_add(1, when, g_peak) - g / peak
