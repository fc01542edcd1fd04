"""Click log loss with label smoothing and class weights."""
import torch
import torch.nn.functional as F

_REDUCTIONS = ("none", "mean", "sum")


class _LogLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, y, weight, pos_weight, reduction):
        ctx.save_for_backward(logits, y, weight, pos_weight)
        ctx.reduction = reduction
        pw = 1.0 if pos_weight is None else pos_weight
        loss = pw * y * F.softplus(-logits) + (1 - y) * F.softplus(logits)
        if weight is not None:
            loss = loss * weight
        if reduction == "sum":
            return loss.sum()
        if reduction == "mean":
            return loss.mean()
        return loss

    @staticmethod
    def backward(ctx, g):
        logits, y, weight, pos_weight = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / logits.numel()
        pw = 1.0 if pos_weight is None else pos_weight
        p = torch.sigmoid(logits)
        d = p - y
        if weight is not None:
            d = d * weight
        return g * d, None, None, None, None


def calibrated_logloss(logits, labels, weight=None, pos_weight=None, smoothing=0.0, reduction="mean"):
    """logits and labels (B, tasks); weight like logits, pos_weight (tasks,); all but logits are data."""
    if reduction not in _REDUCTIONS:
        raise ValueError("reduction must be one of %s" % (_REDUCTIONS,))
    y = labels.to(logits.dtype) * (1 - smoothing) + 0.5 * smoothing
    return _LogLoss.apply(logits, y, weight, pos_weight, reduction)
