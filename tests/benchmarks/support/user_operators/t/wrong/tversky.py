import torch


class TverskyLoss(torch.autograd.Function):
    """1 - Tversky index.  probs in (0, 1) and binary mask, both (N, ...); one value per sample."""

    @staticmethod
    def forward(ctx, probs, mask, alpha=0.5, beta=0.5, smooth=1.0):
        p, t = probs.flatten(1), mask.flatten(1).to(probs.dtype)
        tp, fp, fn = (p * t).sum(1), (p * (1 - t)).sum(1), ((1 - p) * t).sum(1)
        ctx.save_for_backward(probs, mask)
        ctx.hyper = alpha, beta, smooth
        return 1 - (tp + smooth) / (tp + alpha * fp + beta * fn + smooth)

    @staticmethod
    def backward(ctx, grad):
        probs, mask = ctx.saved_tensors
        alpha, beta, smooth = ctx.hyper
        p, t = probs.flatten(1), mask.flatten(1).to(probs.dtype)
        tp, fp, fn = (p * t).sum(1), (p * (1 - t)).sum(1), ((1 - p) * t).sum(1)
        num = (tp + smooth)[:, None]
        den = (tp + alpha * fp + beta * fn + smooth)[:, None]
        dden = t + beta * (1 - t) - alpha * t
        g = -(t * den - num * dden) / den**2
        return (grad[:, None] * g).view_as(probs), None, None, None, None
