import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _GRN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps):
        G = x.pow(2).sum((1, 2), keepdim=True).sqrt()
        N = G / (G.mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, gamma, G, N)
        ctx.eps = eps
        return gamma * (x * N) + beta + x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, gamma, G, N = ctx.saved_tensors
        gN = (g * gamma * x).sum((1, 2), keepdim=True)
        m = G.mean(-1, keepdim=True) + ctx.eps
        gG = gN / m - (gN * G).sum(-1, keepdim=True) / (m * m * G.shape[-1])
        unit = x / G.masked_fill(G == 0, 1.0)
        gx = g * (gamma * N + 1) + gG * unit
        return gx, (g * x * N).sum((0, 1, 2)), g.sum((0, 1, 2)), None


class GRN(nn.Module):
    """Global response normalisation, x (B, H, W, C)"""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(dim))
        self.beta = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        return _GRN.apply(x, self.gamma, self.beta, self.eps)
