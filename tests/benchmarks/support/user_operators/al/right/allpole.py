import torch
from torch.autograd.function import once_differentiable


class AllPole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        y = x.clone()
        for t in range(y.shape[1]):
            for k in range(1, min(t, a.shape[1]) + 1):
                y[:, t] -= a[:, k - 1] * y[:, t - k]
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        T, P = y.shape[1], a.shape[1]
        gx = g.clone()
        for t in range(T - 1, -1, -1):
            for k in range(1, min(T - 1 - t, P) + 1):
                gx[:, t] -= a[:, k - 1] * gx[:, t + k]
        ga = torch.zeros_like(a)
        for k in range(1, min(P, T - 1) + 1):
            ga[:, k - 1] = -(gx[:, k:] * y[:, :-k]).sum(1)
        return gx, ga
