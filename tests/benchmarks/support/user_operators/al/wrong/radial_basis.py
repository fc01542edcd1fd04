import math

import torch
from torch import nn


class _SmearFn(torch.autograd.Function):
    # distances (E,) -> (E, K), Gaussians under a cosine envelope

    @staticmethod
    def forward(ctx, dist, centers, gamma, cutoff):
        ctx.save_for_backward(dist, centers, gamma)
        ctx.cutoff = cutoff
        delta = dist.unsqueeze(-1) - centers
        env = 0.5 * (torch.cos(math.pi * dist / cutoff) + 1) * (dist < cutoff)
        return torch.exp(-gamma * delta**2) * env.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad):
        dist, centers, gamma = ctx.saved_tensors
        inside = (dist < ctx.cutoff).to(dist.dtype)
        phase = math.pi * dist / ctx.cutoff
        env = (0.5 * (phase.cos() + 1) * inside).unsqueeze(-1)
        d_env = (-0.5 * math.pi / ctx.cutoff * phase.sin() * inside).unsqueeze(-1)
        delta = dist.unsqueeze(-1) - centers
        gauss = torch.exp(-gamma * delta**2)
        g = grad * gauss
        slope = -2 * gamma * delta * env
        d_dist = (g * (slope + d_env)).sum(-1)
        d_centers = -(g * slope).reshape(-1, centers.numel()).sum(0)
        d_gamma = -(grad * env * delta**2).sum()
        return d_dist, d_centers, d_gamma, None


class RadialBasis(nn.Module):
    """Trainable radial basis for interatomic distances.

    Args:
        n_rbf: number of Gaussians between 0 and the cutoff
        cutoff: distance from which on all features are zero
    """

    def __init__(self, n_rbf, cutoff):
        super().__init__()
        self.cutoff = float(cutoff)
        self.centers = nn.Parameter(torch.linspace(0, cutoff, n_rbf))
        self.gamma = nn.Parameter(torch.tensor(0.5 * (n_rbf / cutoff) ** 2))

    def forward(self, dist):
        return _SmearFn.apply(dist, self.centers, self.gamma, self.cutoff)
