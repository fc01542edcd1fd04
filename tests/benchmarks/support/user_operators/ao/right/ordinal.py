import torch
import torch.nn as nn


class _CumLogit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, score, cuts, y):
        ctx.save_for_backward(score, cuts, y)
        up, lo, _ = _CumLogit.parts(score, cuts, y)
        return -(up - lo).log()

    @staticmethod
    def parts(score, cuts, y):
        inf = cuts.new_full((1,), float("inf"))
        edges = torch.cat([-inf, cuts, inf])
        up = torch.sigmoid(edges[y + 1] - score)
        lo = torch.sigmoid(edges[y] - score)
        return up, lo, up - lo

    @staticmethod
    def backward(ctx, g):
        score, cuts, y = ctx.saved_tensors
        up, lo, p = _CumLogit.parts(score, cuts, y)
        du, dl = up * (1 - up), lo * (1 - lo)
        g_score = g * (du - dl) / p
        padded = cuts.new_zeros(cuts.numel() + 2)
        padded = padded.index_add(0, y + 1, -g * du / p)
        padded = padded.index_add(0, y, g * dl / p)
        return g_score, padded[1:-1], None


class OrdinalHead(nn.Module):
    """proportional odds loss over K classes; K - 1 ordered cut points

    Args:
        num_classes: K
    Shape:
        score: (N,) latent, y: (N,) long in [0, K)
    """

    def __init__(self, num_classes):
        super().__init__()
        self.cuts = nn.Parameter(torch.linspace(-2.0, 2.0, num_classes - 1))

    def forward(self, score, y):
        return _CumLogit.apply(score, self.cuts, y)
