import math

import torch
from torch import nn


class _SelectGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, score, k):
        perm = score.topk(k).indices
        ctx.save_for_backward(x, score, perm)
        ctx.mark_non_differentiable(perm)
        return x[perm] * torch.tanh(score[perm])[:, None], perm

    @staticmethod
    def backward(ctx, grad, _):
        x, score, perm = ctx.saved_tensors
        t = torch.tanh(score[perm])
        gx = torch.zeros_like(x).index_copy(0, perm, grad * t[:, None])
        gs = (grad * x[perm]).sum(-1) * (1 - t * t)
        return gx, torch.zeros_like(score).index_copy(0, perm, gs), None


class TopKPool(nn.Module):
    """Graph U-Net pooling of one graph: (N, dim) -> (ceil(ratio N), dim) and the nodes kept."""

    def __init__(self, dim, ratio=0.5):
        super().__init__()
        self.p = nn.Parameter(torch.randn(dim))
        self.ratio = ratio

    def forward(self, x):
        score = x @ self.p / self.p.norm()
        return _SelectGate.apply(x, score, math.ceil(self.ratio * x.shape[0]))
