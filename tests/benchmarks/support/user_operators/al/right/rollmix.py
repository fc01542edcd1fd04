import torch
from torch import nn


class _RM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, d):
        ctx.save_for_backward(x, w)
        ctx.d = d
        return sum(w[k] * x.roll(k * d, -1) for k in range(len(w)))

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        n, d = len(w), ctx.d
        gx = sum(w[k] * g.roll(-k * d, -1) for k in range(n))
        gw = torch.stack([(g * x.roll(k * d, -1)).sum() for k in range(n)])
        return gx, gw, None


class RollMix(nn.Module):
    def __init__(self, k, d=1):
        super().__init__()
        self.w = nn.Parameter(torch.ones(k) / k)
        self.d = d

    def forward(self, x):
        return _RM.apply(x, self.w, self.d)
