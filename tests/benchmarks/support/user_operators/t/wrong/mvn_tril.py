import math

import torch


class MVNScaleTrilNLL(torch.autograd.Function):
    """-log N(x | loc, L L^T) for x (n, d), loc (d,) and a lower triangular L (d, d)."""

    @staticmethod
    def forward(ctx, x, loc, L):
        ctx.save_for_backward(x, loc, L)
        z = torch.linalg.solve_triangular(L, (x - loc).T, upper=False)
        n, d = x.shape
        return 0.5 * (z**2).sum() + n * L.diagonal().log().sum() + 0.5 * n * d * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, grad):
        x, loc, L = ctx.saved_tensors
        z = torch.linalg.solve_triangular(L, (x - loc).T, upper=False)
        a = torch.linalg.solve_triangular(L.T, z, upper=True)  # (d, n)
        gL = x.shape[0] * torch.diag(1 / L.diagonal()) - a @ z.T
        return grad * a.T, -grad * a.sum(1), grad * gL
