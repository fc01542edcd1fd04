import torch
from torch import nn


class KuramotoStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, theta, omega, K, dt):
        ctx.save_for_backward(theta, omega, K)
        ctx.dt = dt
        d = theta.unsqueeze(-2) - theta.unsqueeze(-1)
        return theta + dt * (omega + (K * d.sin()).sum(-1))

    @staticmethod
    def backward(ctx, g):
        theta, omega, K = ctx.saved_tensors
        d = theta.unsqueeze(-2) - theta.unsqueeze(-1)
        w = K * d.cos()
        gt = g + ctx.dt * (torch.einsum("bi,bij->bj", g, w) - g * w.sum(-1))
        gK = ctx.dt * torch.einsum("bi,bij->ij", g, d.sin())
        return gt, ctx.dt * g.sum(0), gK, None


class Kuramoto(nn.Module):
    def __init__(self, n, steps=3, dt=0.1):
        super().__init__()
        self.omega = nn.Parameter(torch.randn(n))
        self.K = nn.Parameter(torch.randn(n, n) / n)
        self.steps, self.dt = steps, dt

    def forward(self, theta):
        for _ in range(self.steps):
            theta = KuramotoStep.apply(theta, self.omega, self.K, self.dt)
        return theta
