import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Diffuse(torch.autograd.Function):
    """Explicit steps of heat flow along a rod with insulated ends; discrete adjoint."""

    @staticmethod
    def forward(ctx, u, k, steps, dt):
        states = []
        for _ in range(steps):
            states.append(u)
            flux = dt * k * (u[:, 1:] - u[:, :-1])
            u = u.clone()
            u[:, :-1] += flux
            u[:, 1:] -= flux
        ctx.dt = dt
        ctx.save_for_backward(k, torch.stack(states))
        return u

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        k, states = ctx.saved_tensors
        lam, d_k = grad, torch.zeros_like(k)
        for u in states:
            d_flux = ctx.dt * (lam[:, :-1] - lam[:, 1:])
            d_k += (d_flux * (u[:, 1:] - u[:, :-1])).sum(0)
            lam = lam.clone()
            lam[:, 1:] += k * d_flux
            lam[:, :-1] -= k * d_flux
        return lam, d_k, None, None


class HeatRod(nn.Module):
    """temperature (B, N) after `steps` steps, learnable conductivity of the N - 1 joints"""

    def __init__(self, n, steps=4, dt=0.1):
        super().__init__()
        self.conductivity = nn.Parameter(torch.ones(n - 1))
        self.steps, self.dt = steps, dt

    def forward(self, u):
        if self.steps == 0:
            return u
        return _Diffuse.apply(u, self.conductivity, self.steps, self.dt)
