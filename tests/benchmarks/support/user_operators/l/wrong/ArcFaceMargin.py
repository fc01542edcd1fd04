"""ArcFace head: additive angular margin."""
import math
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-9


class ArcConfig(NamedTuple):
    scale: float = 30.0
    margin: float = 0.5
    easy_margin: bool = False


class _AngularMargin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cosine, labels, cfg):
        ctx.save_for_backward(cosine, labels)
        ctx.cfg = cfg
        m = cfg.margin
        c = cosine.gather(1, labels[:, None])
        phi = c * math.cos(m) - _sine(c) * math.sin(m)
        # beyond pi - m the angle would wrap around: fall back on a linear penalty
        if cfg.easy_margin:
            target = torch.where(c > 0, phi, c)
        else:
            target = torch.where(c > -math.cos(m), phi, c - m * math.sin(m))
        return cfg.scale * cosine.scatter(1, labels[:, None], target)

    @staticmethod
    def backward(ctx, grad):
        cosine, labels = ctx.saved_tensors
        cfg = ctx.cfg
        m = cfg.margin
        c = cosine.gather(1, labels[:, None])
        bent = torch.where(1 - c * c > EPS, c / _sine(c), torch.zeros_like(c))
        slope = math.cos(m) + math.sin(m) * bent
        th = 0.0
        slope = torch.where(c > th, slope, torch.ones_like(c))
        factor = torch.ones_like(cosine).scatter(1, labels[:, None], slope)
        return cfg.scale * grad * factor, None, None


def _sine(c: Tensor) -> Tensor:
    return torch.sqrt((1 - c * c).clamp(min=EPS))


class ArcFaceMargin(nn.Module):
    """Scaled logits with the margin on the true class.

    feats: (B, in_features), labels: (B,) long; returns (B, classes)
    """

    def __init__(self, in_features: int, classes: int, cfg: ArcConfig = ArcConfig()):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, in_features))
        nn.init.xavier_uniform_(self.weight)
        self.cfg = cfg

    def forward(self, feats: Tensor, labels: Tensor) -> Tensor:
        cosine = F.normalize(feats) @ F.normalize(self.weight).t()
        return _AngularMargin.apply(cosine, labels, self.cfg)
