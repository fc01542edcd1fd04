import math
import torch
from torch import nn, Tensor

SQRT3 = math.sqrt(3.0)


def _scaled(x1, x2, lengthscale):
    d = (x1[:, None] - x2[None]) / lengthscale
    r = d.square().sum(-1).clamp_min(1e-30).sqrt()
    return d, r


class _Matern32(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x1, x2, lengthscale, variance):
        ctx.save_for_backward(x1, x2, lengthscale, variance)
        _, r = _scaled(x1, x2, lengthscale)
        return variance * (1 + SQRT3 * r) * torch.exp(-SQRT3 * r)

    @staticmethod
    def backward(ctx, g):
        x1, x2, lengthscale, variance = ctx.saved_tensors
        d, r = _scaled(x1, x2, lengthscale)
        e = torch.exp(-SQRT3 * r)
        g_variance = (g * (1 + SQRT3 * r) * e).sum()
        r0 = d.norm(dim=-1)
        dk_dr = -3.0 * variance * r0 * e * g
        g_d = (dk_dr / r0)[..., None] * d
        g_x = g_d / lengthscale
        g_ls = -(g_d * d).sum((0, 1)) / lengthscale
        return g_x.sum(1), -g_x.sum(0), g_ls, g_variance


class Matern32ARD(nn.Module):
    def __init__(self, dim: int, lengthscale: float = 1.0, variance: float = 1.0):
        super().__init__()
        self.log_ls = nn.Parameter(torch.full((dim,), math.log(lengthscale)))
        self.log_var = nn.Parameter(torch.tensor(math.log(variance)))

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return _Matern32.apply(x1, x2, self.log_ls.exp(), self.log_var.exp())
