import torch
import torch.nn as nn


class _SnakeFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, logscale):
        assert not (x.is_complex()), "real tensors only"
        ctx.save_for_backward(x, alpha)
        ctx.logscale = logscale
        a = alpha.exp() if logscale else alpha
        a = a.view(1, -1, 1)
        return x + torch.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx, gy):
        x, alpha = ctx.saved_tensors
        a = alpha.exp() if ctx.logscale else alpha
        a = a.view(1, -1, 1)
        s = torch.sin(a * x)
        s2 = torch.sin(2 * a * x)
        gx = gy * (1 + s2)
        ga = gy * (x * s2 / a - s ** 2 / a ** 2)
        if ctx.logscale:
            ga = ga * a
        return gx, ga.sum((0, 2)), None


class Snake(nn.Module):
    """x + sin^2(alpha x) / alpha with a trainable alpha per channel; input (B, C, T)."""

    def __init__(self, channels, alpha=1.0, alpha_logscale=False):
        super().__init__()
        self.alpha_logscale = alpha_logscale
        if alpha_logscale:
            self.alpha = nn.Parameter(torch.zeros(channels) * alpha)
        else:
            self.alpha = nn.Parameter(torch.ones(channels) * alpha)

    def forward(self, x):
        return _SnakeFn.apply(x, self.alpha, self.alpha_logscale)
