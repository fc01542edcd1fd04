import torch
from torch.autograd.function import once_differentiable


class SnakeBeta(torch.autograd.Function):
    """x + sin(alpha x)^2 / beta with trainable frequency and magnitude for every channel.

    x: (B, C, T); alpha, beta: (C,), stored as logarithms if ``logscale``
    """

    EPS = 1e-9

    @staticmethod
    def forward(ctx, x, alpha, beta, logscale=True):
        a = (alpha.exp() if logscale else alpha)[None, :, None]
        b = (beta.exp() if logscale else beta)[None, :, None] + SnakeBeta.EPS
        ctx.save_for_backward(x, a, b)
        ctx.logscale = logscale
        return x + torch.sin(a * x).square() / b

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, a, b = ctx.saved_tensors
        sin2 = torch.sin(2 * a * x)
        gx = g * (1 + a * sin2 / b)
        ga = (g * x * sin2 / b).sum((0, 2))
        gb = -(g * torch.sin(a * x).square() / b.square()).sum((0, 2))
        if ctx.logscale:
            ga = ga * a.flatten()
        return gx, ga, gb, None
