"""Proportional-odds (cumulative logit) output layer for ordinal targets."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class _OrderedCuts(torch.autograd.Function):
    """raw -> increasing thresholds: the first is free, the gaps are softplus(raw)."""

    @staticmethod
    def forward(ctx, raw):
        ctx.save_for_backward(raw)
        gaps = torch.cat([raw[:1], F.softplus(raw[1:])])
        return gaps.cumsum(0)

    @staticmethod
    def backward(ctx, g):
        raw, = ctx.saved_tensors
        g_gaps = g.flip(0).cumsum(0).flip(0)
        slope = torch.cat([torch.ones_like(raw[:1]), torch.sigmoid(raw[1:])])
        return g_gaps * slope


class OrdinalLink(nn.Module):
    """Class probabilities from a latent score.

    P(y <= k) = sigmoid(cut_k - score), with classes - 1 learned increasing cuts.

    score: (...) -> (..., classes)
    """

    def __init__(self, classes):
        super().__init__()
        if classes < 2:
            raise ValueError("need at least two classes")
        self.raw = nn.Parameter(torch.zeros(classes - 1))

    @property
    def cuts(self):
        return _OrderedCuts.apply(self.raw)

    def forward(self, score):
        cum = torch.sigmoid(self.cuts - score.unsqueeze(-1))
        one = torch.ones_like(cum[..., :1])
        cum = torch.cat([torch.zeros_like(one), cum, one], -1)
        return cum.diff(dim=-1)


def ordinal_nll(layer, score, target):
    p = layer(score).gather(-1, target.unsqueeze(-1))
    return -p.clamp(min=1e-12).log().mean()
