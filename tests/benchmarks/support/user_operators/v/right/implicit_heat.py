import torch
from torch import nn


def _matrix(kappa, dt):
    n = kappa.shape[0] + 1
    lo = torch.cat([kappa, kappa.new_zeros(1)])
    hi = torch.cat([kappa.new_zeros(1), kappa])
    A = torch.diag(1 + dt * (lo + hi))
    return A - dt * (torch.diag(kappa, 1) + torch.diag(kappa, -1))


class HeatStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, kappa, dt):
        new = torch.linalg.solve(_matrix(kappa, dt), u)
        ctx.dt = dt
        ctx.save_for_backward(u, kappa, new)
        return new

    @staticmethod
    def backward(ctx, g):
        u, kappa, new = ctx.saved_tensors
        lam = torch.linalg.solve(_matrix(kappa, ctx.dt), g)
        gk = -ctx.dt * lam.diff() * new.diff()
        return lam, gk, None


class HeatRod(nn.Module):

    def __init__(self, n, dt=0.1, steps=3):
        super().__init__()
        self.logk = nn.Parameter(torch.zeros(n - 1))
        self.dt, self.steps = dt, steps

    def forward(self, u):
        for _ in range(self.steps):
            u = HeatStep.apply(u, self.logk.exp(), self.dt)
        return u
