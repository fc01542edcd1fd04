import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class RotateScore(torch.autograd.Function):
    @staticmethod
    def forward(ctx, head, tail, phase, rel, margin):
        hr, hi = head.chunk(2, -1)
        tr, ti = tail.chunk(2, -1)
        c, s = phase[rel].cos(), phase[rel].sin()
        dr, di = hr * c - hi * s - tr, hr * s + hi * c - ti
        dist = (dr ** 2 + di ** 2).sqrt()
        ctx.save_for_backward(head, phase, rel, dr, di, dist)
        return margin - dist.sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        head, phase, rel, dr, di, dist = ctx.saved_tensors
        hr, hi = head.chunk(2, -1)
        c, s = phase[rel].cos(), phase[rel].sin()
        w = -g[:, None] / dist.clamp_min(1e-12)
        gr, gi = w * dr, w * di
        ghead = torch.cat([gr * c - gi * s, gi * c + gr * s], -1)
        gph = gi * (hr * c - hi * s) - gr * (hr * s + hi * c)
        gphase = torch.zeros_like(phase).index_add_(0, rel, gph)
        return ghead, -torch.cat([gr, gi], -1), gphase, None, None


class RotatE(nn.Module):
    """head, tail (N, 2d) real part before imaginary part, rel (N,) -> score (N,)"""

    def __init__(self, n_rel, dim, margin=6.0):
        super().__init__()
        self.phase = nn.Parameter(torch.rand(n_rel, dim) * 6.283)
        self.margin = margin

    def forward(self, head, rel, tail):
        return RotateScore.apply(head, tail, self.phase, rel, self.margin)
