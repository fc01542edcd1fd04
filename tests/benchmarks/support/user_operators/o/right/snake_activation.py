import torch
from torch import nn


class _SnakeFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, logscale):
        ctx.save_for_backward(x, alpha)
        ctx.logscale = logscale
        a = alpha.exp() if logscale else alpha
        a = a.view(1, -1, 1)
        return x + torch.sin(a * x).pow(2) / (a + 1e-9)

    @staticmethod
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        a = (alpha.exp() if ctx.logscale else alpha).view(1, -1, 1)
        inv = 1 / (a + 1e-9)
        s2 = torch.sin(2 * a * x)
        g_x = grad * (1 + a * inv * s2)
        g_alpha = (grad * (x * s2 * inv - (torch.sin(a * x) * inv).pow(2))).sum((0, 2))
        if ctx.logscale:
            g_alpha = g_alpha * a.flatten()
        return g_x, g_alpha, None


class Snake(nn.Module):
    """x + sin^2(alpha x) / alpha with one alpha per channel; input (B, C, T)."""

    def __init__(self, channels, alpha=1.0, alpha_logscale=False):
        super().__init__()
        self.alpha_logscale = alpha_logscale
        if alpha_logscale:
            self.alpha = nn.Parameter(torch.zeros(channels) * alpha)
        else:
            self.alpha = nn.Parameter(torch.ones(channels) * alpha)

    def forward(self, x):
        if x.is_complex():
            raise TypeError("x must be real")
        if x.dim() != 3 or x.size(1) != self.alpha.numel():
            raise ValueError("expected (B, %d, T)" % self.alpha.numel())
        return _SnakeFn.apply(x, self.alpha, self.alpha_logscale)
