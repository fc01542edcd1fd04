import torch
from torch import nn


class _CrossStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x0, xl, U, V, b):
        ctx.save_for_backward(x0, xl, U, V, b)
        return x0 * (torch.tanh(xl @ V) @ U + b) + xl

    @staticmethod
    def backward(ctx, g):
        x0, xl, U, V, b = ctx.saved_tensors
        h = torch.tanh(xl @ V)
        gm = g * x0
        gh = (gm @ U.t()) * (1 - h * h)
        gx0 = g * (h @ U + b)
        gxl = g + gh @ V.t()
        return gx0, gxl, h.t() @ gm, xl.t() @ gh, g.sum(0)


class LowRankCross(nn.Module):
    """DCN-v2 cross network with a bottleneck of rank r."""

    def __init__(self, dim, rank, layers=2):
        super().__init__()
        g = torch.Generator().manual_seed(5)
        self.U = nn.ParameterList([nn.Parameter(0.5 * torch.randn(rank, dim, generator=g)) for _ in range(layers)])
        self.V = nn.ParameterList([nn.Parameter(0.5 * torch.randn(dim, rank, generator=g)) for _ in range(layers)])
        self.b = nn.ParameterList([nn.Parameter(0.1 * torch.randn(dim, generator=g)) for _ in range(layers)])

    def forward(self, x):
        out = x
        for U, V, b in zip(self.U, self.V, self.b):
            out = _CrossStep.apply(x, out, U, V, b)
        return out
