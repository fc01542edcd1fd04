import torch
import torch.nn as nn
from torch.autograd.function import Function, once_differentiable


def reflect(x, v):
    return x - 2 * (x @ v / (v @ v)).unsqueeze(-1) * v


class HouseholderFunction(Function):
    """Apply reflections V[0], V[1], ... to the rows of x. Inputs are rebuilt from the output."""

    @staticmethod
    def forward(ctx, x, V):
        y = x
        for v in V:
            y = reflect(y, v)
        ctx.save_for_backward(y, V)
        return y.clone() if y is x else y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, V = ctx.saved_tensors
        gV = torch.zeros_like(V)
        for k in reversed(range(V.shape[0])):
            v = V[k]
            vv = v @ v
            xv, gv = y @ v, g @ v
            y = reflect(y, v)
            gV[k] = -2 / vv * (xv @ g + gv @ y) + 4 * (xv @ gv) / vv ** 2 * v
            g = reflect(g, v)
        return g, gV


class HouseholderLinear(nn.Module):
    """Orthogonal linear map as a product of reflections, with an optional bias."""

    def __init__(self, features, reflections=2, bias=True):
        super().__init__()
        self.V = nn.Parameter(torch.randn(reflections, features))
        self.bias = nn.Parameter(torch.zeros(features)) if bias else None

    def forward(self, x):
        y = HouseholderFunction.apply(x.reshape(-1, x.shape[-1]), self.V).reshape(x.shape)
        return y if self.bias is None else y + self.bias
