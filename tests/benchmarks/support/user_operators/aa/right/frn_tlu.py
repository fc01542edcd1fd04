import torch
import torch.nn as nn


class FRNFunction(torch.autograd.Function):
    """x / sqrt(mean_hw(x^2) + |eps|)"""

    @staticmethod
    def forward(ctx, x, eps):
        nu2 = x.square().mean((2, 3), keepdim=True)
        inv = torch.rsqrt(nu2 + eps.abs())
        ctx.save_for_backward(x, eps)
        return x * inv

    @staticmethod
    def backward(ctx, gy):
        x, eps = ctx.saved_tensors
        nu2 = x.square().mean((2, 3), keepdim=True)
        inv = torch.rsqrt(nu2 + eps.abs())
        n = x.shape[2] * x.shape[3]
        proj = (gy * x).sum((2, 3), keepdim=True)
        gx = inv * gy - x * inv.pow(3) * proj / n
        geps = (-0.5 * inv.pow(3) * proj).sum() * eps.sign()
        return gx, geps.view_as(eps)


class FilterResponseNorm(nn.Module):
    def __init__(self, c, eps=1e-6, tlu=True):
        super().__init__()
        self.gamma = nn.Parameter(torch.linspace(0.5, 1.5, c).view(1, c, 1, 1))
        self.beta = nn.Parameter(torch.zeros(1, c, 1, 1))
        self.eps = nn.Parameter(torch.tensor(eps))
        self.tau = nn.Parameter(torch.full((1, c, 1, 1), -0.2)) if tlu else None

    def forward(self, x):
        y = self.gamma * FRNFunction.apply(x, self.eps) + self.beta
        return y if self.tau is None else torch.maximum(y, self.tau)
