import math

import torch
import torch.nn.functional as F
from torch import nn


class _ArcLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cos, label, scale, m, easy):
        ctx.save_for_backward(cos)
        hot = F.one_hot(label, cos.shape[1]).bool()
        ctx.hot, ctx.scale, ctx.m = hot, scale, m
        ctx.near = cos > (0.0 if easy else math.cos(math.pi - m))
        sin = (1 - cos * cos).clamp(min=1e-9).sqrt()
        phi = cos * math.cos(m) - sin * math.sin(m)
        far = cos if easy else cos - math.sin(math.pi - m) * m
        return scale * torch.where(hot, torch.where(ctx.near, phi, far), cos)

    @staticmethod
    def backward(ctx, g):
        (cos,) = ctx.saved_tensors
        inner = 1 - cos * cos
        sin = inner.clamp(min=1e-9).sqrt()
        d = math.cos(ctx.m) + math.sin(ctx.m) * cos / sin * (inner > 1e-9)
        d = torch.where(ctx.hot & ctx.near, d, torch.ones_like(d))
        return g * d * ctx.scale, None, None, None, None


class ArcMargin(nn.Module):
    def __init__(self, dim, classes, scale=16.0, margin=0.5, easy_margin=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, dim))
        self.scale, self.margin, self.easy = scale, margin, easy_margin

    def forward(self, x, label):
        cos = F.linear(F.normalize(x), F.normalize(self.weight))
        return _ArcLogits.apply(cos, label, self.scale, self.margin, self.easy)
