import torch
import torch.nn as nn
import torch.nn.functional as F


class UnsharpFn(torch.autograd.Function):
    @staticmethod
    def blur(x):
        p = F.pad(x, (1, 1), mode="reflect")
        return (p[..., :-2] + 2 * p[..., 1:-1] + p[..., 2:]) / 4

    @staticmethod
    def blur_t(g):
        p = F.pad(g, (1, 1))
        core = (p[..., :-2] + 2 * p[..., 1:-1] + p[..., 2:]) / 4
        # the reflected samples
        edge = torch.zeros_like(core)
        edge[..., 0] += g[..., 0] / 4
        edge[..., -1] += g[..., -1] / 4
        return core + edge

    @staticmethod
    def forward(ctx, x, amount):
        ctx.save_for_backward(x, amount)
        return x + amount[:, None] * (x - UnsharpFn.blur(x))

    @staticmethod
    def backward(ctx, g):
        x, amount = ctx.saved_tensors
        ga = g * amount[:, None]
        gx = g + ga - UnsharpFn.blur_t(ga)
        return gx, (g * (x - UnsharpFn.blur(x))).sum((0, 2))


class Unsharp1d(nn.Module):
    """Unsharp masking of (B, C, T), T >= 2, one trainable amount per channel."""

    def __init__(self, channels):
        super().__init__()
        self.amount = nn.Parameter(torch.full((channels,), 0.5))

    def forward(self, x):
        return UnsharpFn.apply(x, self.amount)
