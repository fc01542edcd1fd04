import math

import torch

_N = [2.0, 2.0, math.sqrt(3), math.sqrt(6), math.sqrt(6), math.sqrt(8)]


class ZernikeOPD(torch.autograd.Function):
    """Optical path difference from Noll terms 2..7: tilts, defocus, two astigmatisms, coma.

    coef (B, 6), rho (P,), theta (P,) -> (B, P), 0 outside the pupil (rho > 1)
    """

    @staticmethod
    def basis(rho, th):
        r2 = rho * rho
        z = [rho * torch.cos(th), rho * torch.sin(th), 2 * r2 - 1, r2 * torch.sin(2 * th), r2 * torch.cos(2 * th),
             (3 * r2 - 2) * rho * torch.sin(th)]
        return torch.stack([n * x for n, x in zip(_N, z)]) * (rho <= 1)

    @staticmethod
    def slopes(rho, th):
        r2 = rho * rho
        dr = [torch.cos(th), torch.sin(th), 4 * rho, 2 * rho * torch.sin(2 * th), 2 * rho * torch.cos(2 * th),
              (9 * r2 - 2) * torch.sin(th)]
        dt = [-rho * torch.sin(th), rho * torch.cos(th), torch.zeros_like(rho), 2 * r2 * torch.cos(2 * th),
              -2 * r2 * torch.sin(2 * th), (3 * r2 - 2) * rho * torch.cos(th)]
        return torch.stack([n * x for n, x in zip(_N, dr)]), torch.stack([n * x for n, x in zip(_N, dt)])

    @staticmethod
    def forward(ctx, coef, rho, theta):
        ctx.save_for_backward(coef, rho, theta)
        return coef @ ZernikeOPD.basis(rho, theta)

    @staticmethod
    def backward(ctx, g):
        coef, rho, theta = ctx.saved_tensors
        dr, dt = ZernikeOPD.slopes(rho, theta)
        back = coef.T @ g
        return g @ ZernikeOPD.basis(rho, theta).T, (back * dr).sum(0), (back * dt).sum(0)
