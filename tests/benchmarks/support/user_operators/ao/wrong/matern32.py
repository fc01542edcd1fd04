import math
import torch
from torch.autograd.function import once_differentiable


class Matern32(torch.autograd.Function):
    """k(x, y) = v (1 + s) exp(-s), s = sqrt(3) |(x - y) / l|

    x (n, d), y (m, d), log_l (d,), log_v () -> (n, m)
    """

    @staticmethod
    def forward(ctx, x, y, log_l, log_v):
        diff = (x[:, None] - y[None]) / log_l.exp()
        s = math.sqrt(3) * diff.norm(dim=-1)
        k = log_v.exp() * (1 + s) * torch.exp(-s)
        ctx.save_for_backward(diff, s, k, log_l, log_v)
        return k

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        diff, s, k, log_l, log_v = ctx.saved_tensors
        gs = -g * log_v.exp() * s * torch.exp(-s)
        gdiff = 3 * (gs / s).unsqueeze(-1) * diff
        gx = gdiff.sum(1) / log_l.exp()
        gy = -gdiff.sum(0) / log_l.exp()
        return gx, gy, -(gdiff * diff).sum((0, 1)), (g * k).sum()
