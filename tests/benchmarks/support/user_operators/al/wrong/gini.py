import torch


class Gini(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        n = x.size(1)
        v, i = x.sort(1)
        c = torch.arange(1 - n, n, 2, dtype=x.dtype, device=x.device).expand_as(x)
        G = (c * v).sum(1) / (n * x.sum(1))
        ctx.save_for_backward(x, i, c, G)
        return G

    @staticmethod
    def backward(ctx, g):
        x, i, c, G = ctx.saved_tensors
        w = c.gather(1, i)
        return (g / x.sum(1))[:, None] * (w / x.size(1) - G[:, None])
