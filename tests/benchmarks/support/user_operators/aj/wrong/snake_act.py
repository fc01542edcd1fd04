import torch
import torch.nn as nn

EPS = 1e-9


class SnakeFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, beta):
        ctx.save_for_backward(x, alpha, beta)
        shape = (1, -1) + (1,) * (x.dim() - 2)
        a, b = alpha.view(shape), beta.view(shape)
        return x + torch.sin(a * x) ** 2 / (b + EPS)

    @staticmethod
    def backward(ctx, g):
        x, alpha, beta = ctx.saved_tensors
        shape = (1, -1) + (1,) * (x.dim() - 2)
        a, b = alpha.view(shape), beta.view(shape)
        other = [d for d in range(x.dim()) if d != 1]
        s2 = torch.sin(2 * a * x) / (b + EPS)
        gx = g * (1 + a * s2)
        ga = (g * x * s2).sum(other)
        gb = -(g * torch.sin(a * x) ** 2 / (b + EPS) ** 2).sum(0)
        return gx, ga, gb


class SnakeBeta(nn.Module):
    """x (B, C, ...) -> x + sin^2(alpha x) / beta with alpha, beta per channel"""

    def __init__(self, channels, logscale=False):
        super().__init__()
        self.logscale = logscale
        init = torch.zeros if logscale else torch.ones
        self.alpha = nn.Parameter(init(channels))
        self.beta = nn.Parameter(init(channels))

    def forward(self, x):
        a, b = self.alpha, self.beta
        if self.logscale:
            a, b = a.exp(), b.exp()
        return SnakeFn.apply(x, a, b)
