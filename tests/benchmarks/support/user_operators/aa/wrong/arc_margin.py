import math

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _AddAngle(torch.autograd.Function):
    """cos(theta + m) for the target column, continued linearly past theta = pi - m; the others pass."""

    @staticmethod
    def forward(ctx, cosine, label, m, easy):
        row = torch.arange(cosine.shape[0], device=cosine.device)
        t = cosine[row, label].clamp(-1 + 1e-7, 1 - 1e-7)
        sine = (1 - t * t).sqrt()
        phi = t * math.cos(m) - sine * math.sin(m)
        if easy:
            on = t > 0
            phi = torch.where(on, phi, t)
        else:
            on = t > math.cos(math.pi - m)
            phi = torch.where(on, phi, t - math.sin(math.pi - m) * m)
        ctx.save_for_backward(label, t, sine, on)
        ctx.m = m
        out = cosine.clone()
        out[row, label] = phi
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        label, t, sine, on = ctx.saved_tensors
        row = torch.arange(g.shape[0], device=g.device)
        slope = math.cos(ctx.m) + t / sine * math.sin(ctx.m)
        gc = g.clone()
        gc[row, label] = g[row, label] * slope
        return gc, None, None, None


class ArcMarginHead(nn.Module):
    """Additive angular margin logits: s * cos(theta + m at the label)."""

    def __init__(self, dim, classes, s=4.0, m=0.5, easy_margin=False, seed=0):
        super().__init__()
        self.s, self.m, self.easy = s, m, easy_margin
        self.weight = nn.Parameter(torch.randn(classes, dim, generator=torch.Generator().manual_seed(seed)))

    def forward(self, feats, label):
        norm = nn.functional.normalize
        cosine = norm(feats) @ norm(self.weight).t()
        return self.s * _AddAngle.apply(cosine, label, self.m, self.easy)
