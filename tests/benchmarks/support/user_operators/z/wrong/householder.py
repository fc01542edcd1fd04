import torch
from torch.autograd.function import once_differentiable


class HouseholderProduct(torch.autograd.Function):
    """Apply k reflectors (rows of V, any length) one after the other to the columns of x."""

    @staticmethod
    def forward(ctx, x, V):
        for v in V:
            x = x - torch.outer(v, (2.0 / v.dot(v)) * (v @ x))
        ctx.save_for_backward(x, V)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, V = ctx.saved_tensors
        gV = torch.empty_like(V)
        for k in range(V.shape[0] - 1, -1, -1):
            v = V[k]
            c = 2.0 / v.dot(v)
            # a reflection undoes itself, so no intermediate is kept
            x = x - torch.outer(v, c * (v @ x))
            s, r = v @ x, v @ g
            gV[k] = -c * (x @ r + g @ s)
            g = g - torch.outer(v, c * r)
        return g, gV
