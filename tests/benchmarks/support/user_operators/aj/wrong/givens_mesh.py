import torch
from torch import nn
from torch.autograd.function import once_differentiable


class GivensRotate(torch.autograd.Function):
    """Rotates the columns (i, j) of x (B, n) one pair after the other; backward undoes the rotations
    instead of storing what lies between."""

    @staticmethod
    def forward(ctx, x, theta, pairs, ports):
        y = x.clone()
        for t, (i, j) in zip(theta, pairs):
            a, b = y[:, i].clone(), y[:, j].clone()
            y[:, i] = t.cos() * a - t.sin() * b
            y[:, j] = t.sin() * a + t.cos() * b
        ctx.pairs, ctx.ports = pairs, ports
        ctx.save_for_backward(theta, y)
        return y[:, ports]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        theta, y = ctx.saved_tensors
        g = torch.zeros_like(y)
        g[:, ctx.ports] = grad
        gt = torch.zeros_like(theta)
        for k in range(len(ctx.pairs) - 1, -1, -1):
            i, j = ctx.pairs[k]
            c, s = theta[k].cos(), theta[k].sin()
            yi, yj, gi, gj = y[:, i].clone(), y[:, j].clone(), g[:, i].clone(), g[:, j].clone()
            gt[k] = (gj * yi - gi * yj).sum()
            y[:, i], y[:, j] = c * yi + s * yj, c * yj - s * yi
            g[:, i], g[:, j] = c * gi + s * gj, c * gj - s * gi
        return g, gt, None, None


class GivensMesh(nn.Module):
    """Reck mesh of planar rotations over ``n`` modes, as many layers of neighbours as asked for;
    ``ports`` are the modes that are read out (default all)."""

    def __init__(self, n, layers=2, ports=None):
        super().__init__()
        self.pairs = [(i, i + 1) for k in range(layers) for i in range(k % 2, n - 1, 2)]
        self.ports = list(range(n)) if ports is None else sorted(set(ports))
        self.theta = nn.Parameter(torch.rand(len(self.pairs)))

    def forward(self, x):
        return GivensRotate.apply(x, self.theta, self.pairs, self.ports)
