import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _GRNFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps):
        gx = torch.sqrt(x.square().sum((1, 2), keepdim=True))
        inv = 1.0 / (gx.mean(-1, keepdim=True) + eps)
        nx = gx * inv
        ctx.save_for_backward(x, gamma, gx, inv)
        return gamma * (x * nx) + beta + x

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, gamma, gx, inv = ctx.saved_tensors
        nx = gx * inv
        dgamma = (dy * x * nx).sum((0, 1, 2))
        dbeta = dy.sum((0, 1, 2))
        dnx = (dy * gamma * x).sum((1, 2), keepdim=True)
        dgx = inv * (dnx - (dnx * nx).mean(-1, keepdim=True))
        # dead channels have no direction
        unit = torch.where(gx > 0, x / gx.clamp(min=torch.finfo(x.dtype).tiny), torch.zeros_like(x))
        dx = dy * (1 + gamma * nx) + dgx * unit
        return dx, dgamma, dbeta, None


class GRN(nn.Module):
    """Global response normalisation of ConvNeXt V2, channels last: (N, H, W, C)"""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(dim))
        self.beta = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        return _GRNFunction.apply(x, self.gamma, self.beta, self.eps)
