import torch
from torch.autograd.function import once_differentiable


class HouseholderProduct(torch.autograd.Function):
    """x H_1 H_2 ... H_K with H = I - 2 v v^T / (v^T v); x: (N, D), V: (K, D) not normalised.

    transpose=True applies the reflections in the other order.
    """

    @staticmethod
    def forward(ctx, x, V, transpose=False):
        ks = range(len(V))[::-1] if transpose else range(len(V))
        steps = []
        for k in ks:
            steps.append(x)
            x = _reflect(x, V[k])
        ctx.save_for_backward(V, *steps)
        ctx.ks = list(ks)
        return x if ctx.ks else x.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        V, *steps = ctx.saved_tensors
        dV = torch.zeros_like(V)
        for k, x in zip(reversed(ctx.ks), reversed(steps)):
            v = V[k]
            s = v @ v
            xv, gv = x @ v, g @ v
            dV[k] = -2 / s * (gv @ x + xv @ g)
            g = _reflect(g, v)
        return g, dV, None


def _reflect(x, v):
    return x - (2 / (v @ v)) * torch.outer(x @ v, v)
