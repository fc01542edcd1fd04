import math

import torch
from torch import nn


def _unit(x):
    n = x.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return x / n, n


class _CosScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, log_scale, top):
        ctx.save_for_backward(q, k, log_scale)
        ctx.top = top
        return _unit(q)[0] @ _unit(k)[0].transpose(-1, -2) * log_scale.clamp(max=top).exp()

    @staticmethod
    def backward(ctx, g):
        q, k, log_scale = ctx.saved_tensors
        (qu, qn), (ku, kn) = _unit(q), _unit(k)
        s = log_scale.clamp(max=ctx.top).exp()
        gqu, gku = s * (g @ ku), s * (g.transpose(-1, -2) @ qu)
        gq = (gqu - qu * (gqu * qu).sum(-1, keepdim=True)) / qn
        gk = (gku - ku * (gku * ku).sum(-1, keepdim=True)) / kn
        gs = (g * (qu @ ku.transpose(-1, -2))).sum((0, 2, 3)).reshape(log_scale.shape) * s
        return gq, gk, gs * (log_scale <= ctx.top), None


class CosineScores(nn.Module):
    """Scaled cosine attention scores (Swin v2); a scale per head, at most max_scale.

    q, k: (B, H, T, D)
    """

    def __init__(self, heads, init=5.0, max_scale=100.0):
        super().__init__()
        self.log_scale = nn.Parameter(torch.full((heads, 1, 1), math.log(init)))
        self.top = math.log(max_scale)

    def forward(self, q, k):
        return _CosScores.apply(q, k, self.log_scale, self.top)
