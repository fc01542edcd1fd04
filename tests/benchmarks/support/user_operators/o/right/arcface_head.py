import math

import torch
import torch.nn.functional as F
from torch import nn


class _AngularMargin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cosine, labels, margin, scale):
        ctx.save_for_backward(cosine, labels)
        ctx.margin, ctx.scale = margin, scale
        t = cosine.gather(1, labels[:, None])
        sine = (1 - t * t).clamp(min=1e-12).sqrt()
        phi = t * math.cos(margin) - sine * math.sin(margin)
        phi = torch.where(t > math.cos(math.pi - margin), phi, t - margin * math.sin(margin))
        return cosine.scatter(1, labels[:, None], phi) * scale

    @staticmethod
    def backward(ctx, grad):
        cosine, labels = ctx.saved_tensors
        cos_m, sin_m = math.cos(ctx.margin), math.sin(ctx.margin)
        t = cosine.gather(1, labels[:, None])
        sine = (1 - t * t).clamp(min=1e-12).sqrt()
        d = cos_m + sin_m * t / sine * (1 - t * t > 1e-12)
        d = torch.where(t > math.cos(math.pi - ctx.margin), d, torch.ones_like(d))
        g_t = grad.gather(1, labels[:, None]) * d
        return grad.scatter(1, labels[:, None], g_t) * ctx.scale, None, None, None


class ArcFaceHead(nn.Module):
    """Additive angular margin classifier.

    forward(embeddings (N, D), labels (N,) int64) -> logits (N, C)
    """

    def __init__(self, dim, num_classes, margin=0.5, scale=30.0):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_classes, dim))
        nn.init.xavier_uniform_(self.weight)
        self.margin = margin
        self.scale = scale

    def forward(self, embeddings, labels):
        cosine = F.normalize(embeddings) @ F.normalize(self.weight).t()
        return _AngularMargin.apply(cosine, labels, self.margin, self.scale)
