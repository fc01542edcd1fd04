import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class _AngularMargin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cos, label, scale, margin):
        ctx.save_for_backward(cos, label)
        ctx.scale, ctx.margin = scale, margin
        t = cos.gather(1, label[:, None])
        sin = (1 - t * t).clamp(min=1e-7).sqrt()
        easy = t * math.cos(margin) - sin * math.sin(margin)
        hard = t - margin * math.sin(margin)
        t = torch.where(t > -math.cos(margin), easy, hard)
        return scale * cos.scatter(1, label[:, None], t)

    @staticmethod
    def backward(ctx, g):
        cos, label = ctx.saved_tensors
        m = ctx.margin
        g = g * ctx.scale
        idx = label[:, None]
        t = cos.gather(1, idx)
        room = 1 - t * t
        tan = torch.where(room > 1e-7, t / room.clamp(min=1e-7).sqrt(), torch.zeros_like(t))
        k = math.cos(m) + tan * math.sin(m)
        return g.scatter(1, idx, g.gather(1, idx) * k), None, None, None


class ArcMarginProduct(nn.Module):
    """
    Args:
        in_features: size of the embedding
        out_features: number of identities
        s: norm of the logits
        m: additive angular margin in radian
    """

    def __init__(self, in_features, out_features, s=30.0, m=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.m = s, m

    def forward(self, emb, label):
        cos = F.normalize(emb) @ F.normalize(self.weight).t()
        return _AngularMargin.apply(cos, label, self.s, self.m)
