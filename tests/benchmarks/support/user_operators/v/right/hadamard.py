import torch


def fwht(a):
    n = a.shape[-1]
    h = 1
    while h < n:
        a = a.unflatten(-1, (n // (2 * h), 2, h))
        a = torch.stack([a[..., 0, :] + a[..., 1, :], a[..., 0, :] - a[..., 1, :]], -2).flatten(-3)
        h *= 2
    return a / n ** 0.5


class Hadamard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return fwht(x.reshape(-1, x.shape[-1])).view(x.shape)

    @staticmethod
    def backward(ctx, g):
        return fwht(g.reshape(-1, g.shape[-1])).view(g.shape)
