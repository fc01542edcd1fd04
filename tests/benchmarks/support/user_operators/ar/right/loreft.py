import torch
from torch import nn


class _Intervene(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, R, W, b):
        ctx.save_for_backward(h, R, W, b)
        return h + (h @ W.t() + b - h @ R.t()) @ R

    @staticmethod
    def backward(ctx, g):
        h, R, W, b = ctx.saved_tensors
        low = g @ R.t()
        u = h @ W.t() + b - h @ R.t()
        flat = lambda t: t.reshape(-1, t.size(-1))
        dh = g + low @ (W - R)
        dW = flat(low).t() @ flat(h)
        dR = flat(u).t() @ flat(g) - dW
        return dh, dR, dW, flat(low).sum(0)


class LoReFT(nn.Module):
    """h + R^T (W h + b - R h), low-rank representation intervention. h (..., hidden)"""

    def __init__(self, hidden, rank):
        super().__init__()
        self.R = nn.Parameter(nn.init.orthogonal_(torch.empty(rank, hidden)))
        self.W = nn.Parameter(torch.randn(rank, hidden) * hidden ** -0.5)
        self.b = nn.Parameter(torch.zeros(rank))

    def forward(self, h):
        return _Intervene.apply(h, self.R, self.W, self.b)
