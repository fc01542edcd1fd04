import torch
from torch.autograd import Function


class TverskyLoss(Function):
    """1 - Tversky index, averaged over batch and classes.

    TI = (TP + s) / (TP + alpha FP + beta FN + s)

    Args:
        probs: (B, C, *) probabilities
        target: (B, C, *) one-hot masks of the same shape, bool or 0/1; no gradient
        alpha, beta: weights of false positives and of false negatives
        smooth: s above
    """

    @staticmethod
    def forward(ctx, probs, target, alpha=0.3, beta=0.7, smooth=1.0):
        assert probs.shape == target.shape
        t = target.to(probs.dtype)
        ctx.save_for_backward(probs, t)
        ctx.alpha, ctx.beta, ctx.smooth = alpha, beta, smooth
        num, den = TverskyLoss._parts(probs, t, alpha, beta, smooth)
        return (1 - num / den).mean()

    @staticmethod
    def _parts(p, t, alpha, beta, smooth):
        p, t = p.flatten(2), t.flatten(2)
        tp = (p * t).sum(-1)
        fp = (p * (1 - t)).sum(-1)
        fn = ((1 - p) * t).sum(-1)
        return tp + smooth, tp + alpha * fp + beta * fn + smooth

    @staticmethod
    def backward(ctx, grad):
        p, t = ctx.saved_tensors
        alpha, beta = ctx.alpha, ctx.beta
        num, den = TverskyLoss._parts(p, t, alpha, beta, ctx.smooth)
        shape = num.shape + (1,) * (p.dim() - 2)
        num, den = num.view(shape), den.view(shape)
        d_den = t + alpha * (1 - t) - beta * t
        d_index = (t * den - num * d_den) / den ** 2
        n = p.size(0) * p.size(1)
        return -grad / n * d_index, None, None, None, None
