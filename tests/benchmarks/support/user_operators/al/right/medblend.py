import torch
from torch import nn


def ref(T, k, dev):
    i = (torch.arange(T, device=dev)[:, None] + torch.arange(k, device=dev) - k // 2).abs()
    return T - 1 - (T - 1 - i).abs()


class _Med(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        m, j = x[:, ref(x.size(1), k, x.device)].median(2)
        ctx.k = k
        ctx.save_for_backward(j)
        return m

    @staticmethod
    def backward(ctx, g):
        j, = ctx.saved_tensors
        T = g.size(1)
        src = ref(T, ctx.k, g.device).expand(len(g), -1, -1).gather(2, j[..., None])[..., 0]
        return torch.zeros(g.shape, dtype=g.dtype, device=g.device).scatter_add(1, src, g), None


class MedBlend(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.k = k
        self.w = nn.Parameter(torch.tensor(.5))

    def forward(self, x):
        return x + self.w * (_Med.apply(x, self.k) - x)
