import torch
from torch import nn


class HookeFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, du, lam, mu):
        ctx.save_for_backward(du, lam, mu)
        e = 0.5 * (du + du.mT)
        tr = e.diagonal(dim1=-2, dim2=-1).sum(-1)
        I = torch.eye(du.shape[-1], dtype=du.dtype, device=du.device)
        stress = lam * tr[..., None, None] * I + 2 * mu * e
        energy = 0.5 * lam * tr ** 2 + mu * (e * e).sum((-1, -2))
        return stress, energy

    @staticmethod
    def backward(ctx, gs, gw):
        du, lam, mu = ctx.saved_tensors
        e = 0.5 * (du + du.mT)
        tr = e.diagonal(dim1=-2, dim2=-1).sum(-1)
        I = torch.eye(du.shape[-1], dtype=du.dtype, device=du.device)
        gtr = gs.diagonal(dim1=-2, dim2=-1).sum(-1)
        gdu = (lam * (gtr + gw * tr))[..., None, None] * I + 2 * mu * gs + 2 * mu * gw[..., None, None] * e
        glam = (gtr * tr + 0.5 * gw * tr ** 2).sum()
        gmu = (2 * gs * e).sum() + (gw * (e * e).sum((-1, -2))).sum()
        return gdu, glam, gmu


class IsotropicElastic(nn.Module):
    """Small-strain Hooke. displacement gradient (..., d, d) -> stress (..., d, d), energy density (...)"""

    def __init__(self):
        super().__init__()
        self.log_lam = nn.Parameter(torch.tensor(0.0))
        self.log_mu = nn.Parameter(torch.tensor(0.0))

    def forward(self, grad_u):
        return HookeFn.apply(grad_u, self.log_lam.exp(), self.log_mu.exp())
