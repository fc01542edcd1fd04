import math

import torch
from torch.linalg import solve_triangular


class MVNLogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mu, L):
        z = solve_triangular(L, (x - mu).t(), upper=False)
        ctx.save_for_backward(x, mu, L)
        d = mu.shape[0]
        return -0.5 * (z * z).sum(0) - L.diagonal().log().sum() - 0.5 * d * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, g):
        x, mu, L = ctx.saved_tensors
        z = solve_triangular(L, (x - mu).t(), upper=False)
        u = solve_triangular(L.t(), z, upper=True)
        gx = -(u * g).t()
        gL = torch.tril((u * g) @ z.t()) - torch.diag(g.sum() / L.diagonal())
        return gx, -gx.sum(0), gL
