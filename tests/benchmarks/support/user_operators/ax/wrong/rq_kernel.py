import torch
import torch.nn.functional as F
from torch import nn


class _RationalQuadratic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x1, x2, lengthscale, alpha, outputscale):
        ctx.save_for_backward(x1, x2, lengthscale, alpha, outputscale)
        diff = (x1[:, None] - x2[None]) / lengthscale
        return outputscale * (1 + diff.pow(2).sum(-1) / (2 * alpha)) ** (-alpha)

    @staticmethod
    def backward(ctx, grad):
        x1, x2, lengthscale, alpha, outputscale = ctx.saved_tensors
        delta = x1[:, None] - x2[None]
        d2 = (delta / lengthscale).pow(2).sum(-1)
        base = 1 + d2 / (2 * alpha)
        shape = base ** (-alpha)
        gk = grad * outputscale * shape
        # derivative with respect to the squared scaled distance
        gd = -0.5 * gk / base
        gx = 2 * gd[..., None] * delta / lengthscale**2
        g_len = -(gx * delta).sum((0, 1)) / lengthscale
        g_alpha = (gk * -base.log()).sum()
        g_out = (grad * shape).sum()
        return gx.sum(1), -gx.sum(0), g_len, g_alpha, g_out


class RQKernel(nn.Module):
    """Rational quadratic kernel with one lengthscale per dimension.

    Args:
        dim (int): number of input dimensions.

    Shape:
        - x1: ``(n, dim)``
        - x2: ``(m, dim)``
        - output: ``(n, m)``
    """

    def __init__(self, dim):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(dim))
        self.raw_alpha = nn.Parameter(torch.zeros(()))
        self.raw_outputscale = nn.Parameter(torch.zeros(()))

    def forward(self, x1, x2):
        return _RationalQuadratic.apply(
            x1, x2, F.softplus(self.raw_lengthscale), F.softplus(self.raw_alpha), F.softplus(self.raw_outputscale)
        )
