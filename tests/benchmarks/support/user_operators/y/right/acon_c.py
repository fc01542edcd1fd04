import torch
import torch.nn as nn


class AconFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p1, p2, beta):
        ctx.save_for_backward(x, p1, p2, beta)
        u = (p1 - p2) * x
        return u * torch.sigmoid(beta * u) + p2 * x

    @staticmethod
    def backward(ctx, grad):
        x, p1, p2, beta = ctx.saved_tensors
        u = (p1 - p2) * x
        s = torch.sigmoid(beta * u)
        ds = s * (1 - s)
        du = grad * (s + beta * u * ds)
        dx = du * (p1 - p2) + grad * p2
        dp1 = (du * x).sum((0, 2, 3), keepdim=True)
        dp2 = ((grad - du) * x).sum((0, 2, 3), keepdim=True)
        dbeta = (grad * u * u * ds).sum((0, 2, 3), keepdim=True)
        return dx, dp1, dp2, dbeta


class AconC(nn.Module):
    r"""ACON activation (activate or not), (p1*x - p2*x) * sigmoid(beta*(p1*x - p2*x)) + p2*x"""

    def __init__(self, c1):
        super().__init__()
        self.p1 = nn.Parameter(torch.randn(1, c1, 1, 1))
        self.p2 = nn.Parameter(torch.randn(1, c1, 1, 1))
        self.beta = nn.Parameter(torch.ones(1, c1, 1, 1))

    def forward(self, x):
        return AconFunction.apply(x, self.p1, self.p2, self.beta)
