import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class RK4LinearStep(torch.autograd.Function):
    """One classic Runge-Kutta step of y' = A y + b, y (N, d)"""

    @staticmethod
    def forward(ctx, y, A, b, h):
        f = lambda s: s @ A.t() + b
        k1 = f(y)
        s2 = y + h / 2 * k1
        k2 = f(s2)
        s3 = y + h / 2 * k2
        k3 = f(s3)
        s4 = y + h * k3
        k4 = f(s4)
        ctx.save_for_backward(y, s2, s3, s4, A)
        ctx.h = h
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, s2, s3, s4, A = ctx.saved_tensors
        h = ctx.h
        gk4 = h / 6 * g
        gs4 = gk4 @ A
        gk3 = h / 3 * g + h / 2 * gs4
        gs3 = gk3 @ A
        gk2 = h / 3 * g + h / 2 * gs3
        gs2 = gk2 @ A
        gk1 = h / 6 * g + h / 2 * gs2
        gy = g + gs2 + gs3 + gs4 + gk1 @ A
        gA = gk1.t() @ y + gk2.t() @ s2 + gk3.t() @ s3 + gk4.t() @ s4
        gb = (gk1 + gk2 + gk3 + gk4).sum(0)
        return gy, gA, gb, None


class LinearODE(nn.Module):
    def __init__(self, dim, t1=1.0, steps=3):
        super().__init__()
        self.A = nn.Parameter(torch.randn(dim, dim) * 0.5)
        self.b = nn.Parameter(torch.randn(dim) * 0.1)
        self.h, self.steps = t1 / steps, steps

    def forward(self, y0):
        ys = [y0]
        for _ in range(self.steps):
            ys.append(RK4LinearStep.apply(ys[-1], self.A, self.b, self.h))
        return torch.stack(ys)
