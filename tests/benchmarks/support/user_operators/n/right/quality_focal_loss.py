import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class QualityFocalLoss(torch.autograd.Function):
    """|y - sigmoid(x)|**beta * BCE(x, y) with soft targets y in [0, 1], normalised by avg_factor."""

    @staticmethod
    def forward(ctx, pred, score, weight=None, beta=2.0, avg_factor=None):
        p = pred.sigmoid()
        bce = F.binary_cross_entropy_with_logits(pred, score, reduction="none")
        delta = (score - p).abs()
        loss = bce * delta.pow(beta)
        if weight is not None:
            loss = loss * weight
        norm = float(pred.numel() if avg_factor is None else avg_factor)
        ctx.save_for_backward(pred, p, bce, score, weight)
        ctx.beta, ctx.norm = beta, norm
        return loss.sum() / norm

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pred, p, bce, score, weight = ctx.saved_tensors
        beta = ctx.beta
        err = p - score
        mod = err.abs().pow(beta)
        if beta == 0:
            dmod = torch.zeros_like(err)
        else:
            dmod = beta * err.abs().pow(beta - 1) * err.sign() * p * (1 - p)
        scale = grad / ctx.norm
        if weight is not None:
            scale = scale * weight
        g_pred = scale * (err * mod + bce * dmod)
        g_score = g_weight = None
        if ctx.needs_input_grad[1]:
            base = torch.zeros_like(err) if beta == 0 else beta * err.abs().pow(beta - 1) * err.sign()
            g_score = scale * (-pred * mod - bce * base)
        if weight is not None and ctx.needs_input_grad[2]:
            g_weight = grad / ctx.norm * bce * mod
        return g_pred, g_score, g_weight, None, None
