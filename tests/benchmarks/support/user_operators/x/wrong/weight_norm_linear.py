import torch
import torch.nn as nn


class WNLinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, g, b):
        n = v.norm(dim=1, keepdim=True)
        ctx.save_for_backward(x, v, g)
        return x @ (g * v / n).t() + b

    @staticmethod
    def backward(ctx, dy):
        x, v, g = ctx.saved_tensors
        n = v.norm(dim=1, keepdim=True)
        u = v / n
        dw = dy.reshape(-1, dy.shape[-1]).t() @ x.reshape(-1, x.shape[-1])
        dg = (dw * u).sum(1, keepdim=True)
        dv = g / n * dw
        return dy @ (g * u), dv, dg, dy.reshape(-1, dy.shape[-1]).sum(0)


class WNLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.v = nn.Parameter(torch.randn(n_out, n_in))
        self.g = nn.Parameter(torch.ones(n_out, 1))
        self.b = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return WNLinearFunction.apply(x, self.v, self.g, self.b)
