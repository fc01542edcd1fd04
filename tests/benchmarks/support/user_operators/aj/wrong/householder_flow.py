import torch
from torch import nn
from torch.autograd.function import once_differentiable


class Reflect(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, V):
        xs = []
        for v in V:
            xs.append(x)
            x = x - 2 / v.dot(v) * torch.outer(x @ v, v)
        ctx.save_for_backward(V, *xs)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        V, *xs = ctx.saved_tensors
        gV = torch.empty_like(V)
        for i in reversed(range(len(V))):
            v, x = V[i], xs[i]
            n2 = v.dot(v)
            s, t = x @ v, g @ v
            gV[i] = -2 / n2 * (s @ g + t @ x)
            g = g - 2 / n2 * torch.outer(t, v)
        return g, gV


class HouseholderFlow(nn.Module):
    def __init__(self, dim, n_reflections=4):
        super().__init__()
        self.v = nn.Parameter(torch.randn(n_reflections, dim))

    def forward(self, z):
        return Reflect.apply(z, self.v), z.new_zeros(z.shape[0])
