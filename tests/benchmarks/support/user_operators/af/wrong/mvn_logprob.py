import math

import torch
from torch.autograd.function import once_differentiable


class _MvnLogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, loc, scale_tril):
        diff = (x - loc).t()
        z = torch.linalg.solve_triangular(scale_tril, diff, upper=False)
        diag = scale_tril.diagonal()
        ctx.save_for_backward(z, scale_tril)
        d = loc.numel()
        return -0.5 * (z * z).sum(0) - diag.log().sum() - 0.5 * d * math.log(2 * math.pi)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z, L = ctx.saved_tensors
        y = torch.linalg.solve_triangular(L.t(), z, upper=True)  # precision @ diff
        gy = y * grad
        g_x = -gy.t()
        g_loc = gy.sum(1)
        g_L = (gy @ z.t()).tril()
        g_L = g_L - torch.diag(grad.numel() / L.diagonal())
        return g_x, g_loc, g_L


def mvn_log_prob(x, loc, scale_tril):
    """log N(x; loc, L L^T) for x (N, d), loc (d,), L lower triangular (d, d) with positive diagonal"""
    return _MvnLogProb.apply(x, loc, scale_tril)
