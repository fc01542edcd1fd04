import torch
import torch.nn as nn


def _counts(p, t):
    return (p * t).sum(-1), (p * (1 - t)).sum(-1), ((1 - p) * t).sum(-1)


class _Tversky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, t, alpha, beta, smooth, gamma):
        ctx.save_for_backward(p, t)
        ctx.opts = alpha, beta, smooth, gamma
        tp, fp, fn = _counts(p, t)
        score = (tp + smooth) / (tp + alpha * fp + beta * fn + smooth)
        return (1 - score) ** gamma

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        alpha, beta, smooth, gamma = ctx.opts
        tp, fp, fn = _counts(p, t)
        top, low = tp + smooth, tp + alpha * fp + beta * fn + smooth
        g_score = -g * gamma * (1 - top / low) ** (gamma - 1)
        g_top, g_low = g_score / low, -g_score * top / low ** 2
        d_low = t + alpha * (1 - t) - beta * t
        return g_top[..., None] * t + g_low[..., None] * d_low, None, None, None, None, None


class TverskyLoss(nn.Module):
    """Focal Tversky loss.

    Args:
        alpha: weight of false positives
        beta: weight of false negatives
        gamma: exponent, 1 or more

    prob, target: (B, C, N), prob in (0, 1), target 0/1. Mean over B and C.
    """

    def __init__(self, alpha=0.3, beta=0.7, smooth=1.0, gamma=1.5):
        super().__init__()
        self.opts = alpha, beta, smooth, gamma

    def forward(self, prob, target):
        return _Tversky.apply(prob, target.to(prob.dtype), *self.opts).mean()
