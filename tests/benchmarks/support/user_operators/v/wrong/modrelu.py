import torch
from torch import nn


class ModReLUFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, b):
        ctx.save_for_backward(z, b)
        r = z.abs()
        return torch.relu(r + b) / r * z

    @staticmethod
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        r = z.abs()
        on = (r + b > 0).to(r.dtype)
        u = z / r
        radial = (u * g).real
        gz = on * (g + b * (g - u * radial) / r)
        gb = on * radial
        return gz, gb.reshape(-1, b.shape[0]).sum(0)


class ModReLU(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.b = nn.Parameter(torch.empty(features).uniform_(-0.01, 0.01))

    def forward(self, z):
        return ModReLUFn.apply(z, self.b)
