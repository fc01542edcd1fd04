import torch
from torch.autograd import Function


def _green(F):
    return 0.5 * (F.mT @ F - torch.eye(F.shape[-1], dtype=F.dtype, device=F.device))


class StVK(Function):
    """St. Venant-Kirchhoff energy density; F (B, 3, 3), mu and lam (B,) -> (B,)"""

    @staticmethod
    def forward(ctx, F, mu, lam):
        E = _green(F)
        ctx.save_for_backward(F, mu, lam, E)
        tr = E.diagonal(dim1=-2, dim2=-1).sum(-1)
        return mu * (E * E).sum((-2, -1)) + 0.5 * lam * tr * tr

    @staticmethod
    def backward(ctx, g):
        F, mu, lam, E = ctx.saved_tensors
        tr = E.diagonal(dim1=-2, dim2=-1).sum(-1)
        P = 2 * (g * mu)[:, None, None] * F @ E + (g * lam * tr)[:, None, None] * F
        return P, g * (E * E).sum((-2, -1)), 0.5 * g * tr * tr
