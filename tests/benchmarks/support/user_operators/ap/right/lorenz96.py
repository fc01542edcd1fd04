import torch
from torch import nn


class L96Tendency(torch.autograd.Function):
    """dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F_i, cyclic in the last dimension"""

    @staticmethod
    def forward(ctx, x, forcing):
        ctx.save_for_backward(x, forcing)
        return (x.roll(-1, -1) - x.roll(2, -1)) * x.roll(1, -1) - x + forcing

    @staticmethod
    def backward(ctx, g):
        x, forcing = ctx.saved_tensors
        gx = ((g * x.roll(1, -1)).roll(1, -1)
              - (g * x.roll(1, -1)).roll(-2, -1)
              + (g * (x.roll(-1, -1) - x.roll(2, -1))).roll(-1, -1)
              - g)
        return gx, g.sum_to_size(forcing.shape)


class Lorenz96(nn.Module):
    """One RK4 step with a learned forcing. x: (..., n), n >= 4"""

    def __init__(self, n, dt=0.05):
        super().__init__()
        self.forcing = nn.Parameter(torch.full((n,), 8.0))
        self.dt = dt

    def forward(self, x):
        f, h = self.forcing, self.dt
        k1 = L96Tendency.apply(x, f)
        k2 = L96Tendency.apply(x + h / 2 * k1, f)
        k3 = L96Tendency.apply(x + h / 2 * k2, f)
        k4 = L96Tendency.apply(x + h * k3, f)
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
