import math

import torch
import torch.nn as nn
from torch.autograd import Function


class ArcMarginFunction(Function):
    @staticmethod
    def _cosine(x, w):
        xn = x.norm(dim=1, keepdim=True)
        wn = w.norm(dim=1, keepdim=True)
        return x / xn, w / wn, xn, wn

    @staticmethod
    def forward(ctx, x, w, label, s, m, easy):
        xh, wh, _, _ = ArcMarginFunction._cosine(x, w)
        cos = xh @ wh.t()
        sin = (1 - cos * cos).clamp(min=0).sqrt()
        phi = cos * math.cos(m) - sin * math.sin(m)
        if easy:
            phi = torch.where(cos > 0, phi, cos)
        else:
            phi = torch.where(cos > -math.cos(m), phi, cos - math.sin(m) * m)
        hot = torch.zeros_like(cos, dtype=torch.bool).scatter(1, label[:, None], True)
        ctx.save_for_backward(x, w, hot)
        ctx.s, ctx.m, ctx.limit = s, m, 0.0 if easy else -math.cos(m)
        return s * torch.where(hot, phi, cos)

    @staticmethod
    def backward(ctx, g):
        x, w, hot = ctx.saved_tensors
        xh, wh, xn, wn = ArcMarginFunction._cosine(x, w)
        cos = xh @ wh.t()
        use = hot & (cos > ctx.limit)
        sin = torch.where(use, 1 - cos * cos, torch.ones_like(cos)).clamp(min=1e-12).sqrt()
        slope = torch.where(use, math.cos(ctx.m) + math.sin(ctx.m) * cos / sin, torch.ones_like(cos))
        dcos = ctx.s * g * slope
        dx = dcos @ wh
        dw = dcos.t() @ xh
        dx = (dx - xh * (xh * dx).sum(1, keepdim=True)) / xn
        dw = dw / wn
        return dx, dw, None, None, None, None


class ArcFaceHead(nn.Module):
    def __init__(self, in_features, n_classes, s=30.0, m=0.5, easy_margin=False):
        super().__init__()
        self.s, self.m, self.easy_margin = s, m, easy_margin
        self.weight = nn.Parameter(torch.empty(n_classes, in_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, embeddings, labels):
        return ArcMarginFunction.apply(embeddings, self.weight, labels, self.s, self.m, self.easy_margin)
