import torch
from torch.autograd.function import once_differentiable


def _run(x, a):
    T, K = x.shape[1], a.shape[1]
    y = torch.zeros_like(x)
    for t in range(T):
        v = x[:, t]
        for k in range(min(K, t)):
            v = v - a[:, k] * y[:, t - 1 - k]
        y[:, t] = v
    return y


class AllPole(torch.autograd.Function):
    """y[t] = x[t] - sum_k a[k] y[t-1-k];  x (B, T), a (B, K)"""

    @staticmethod
    def forward(ctx, x, a):
        y = _run(x, a)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        T = g.shape[1]
        gx = _run(g.flip(1), a).flip(1)
        ga = torch.zeros_like(a)
        for k in range(min(a.shape[1], T - 1)):
            ga[:, k] = -(gx[:, k + 1:] * y[:, :T - 1 - k]).sum(1)
        return gx, ga
