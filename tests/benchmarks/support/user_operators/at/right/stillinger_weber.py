import torch
from torch.autograd import Function


class SWThreeBody(Function):
    """Three-body part of the Stillinger-Weber potential, one energy per triplet j-i-k.

    rij, rik: (T, 3), lam: (T,). Zero beyond the cutoff a.
    """

    @staticmethod
    def forward(ctx, rij, rik, lam, gamma=1.2, a=1.8, cos0=-1.0 / 3.0):
        ctx.save_for_backward(rij, rik, lam)
        ctx.consts = gamma, a, cos0
        d1, d2 = rij.norm(dim=-1), rik.norm(dim=-1)
        inside = (d1 < a) & (d2 < a)
        x1 = torch.where(inside, d1 - a, -1.0)
        x2 = torch.where(inside, d2 - a, -1.0)
        cos = (rij * rik).sum(-1) / (d1 * d2)
        e = lam * (cos - cos0) ** 2 * torch.exp(gamma / x1 + gamma / x2)
        return torch.where(inside, e, 0.0)

    @staticmethod
    def backward(ctx, grad_e):
        rij, rik, lam = ctx.saved_tensors
        gamma, a, cos0 = ctx.consts
        d1, d2 = rij.norm(dim=-1), rik.norm(dim=-1)
        inside = (d1 < a) & (d2 < a)
        x1 = torch.where(inside, d1 - a, -1.0)
        x2 = torch.where(inside, d2 - a, -1.0)
        u1, u2 = rij / d1[:, None], rik / d2[:, None]
        cos = (u1 * u2).sum(-1)
        h = torch.exp(gamma / x1 + gamma / x2) * inside
        delta = cos - cos0
        g_cos = grad_e * lam * 2 * delta * h
        e = grad_e * lam * delta ** 2 * h
        g1 = (g_cos / d1)[:, None] * (u2 - cos[:, None] * u1) - (e * gamma / x1 ** 2)[:, None] * u1
        g2 = (g_cos / d2)[:, None] * (u1 - cos[:, None] * u2) - (e * gamma / x2 ** 2)[:, None] * u2
        return g1, g2, grad_e * delta ** 2 * h, None, None, None
