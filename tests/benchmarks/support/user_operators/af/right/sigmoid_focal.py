import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class SigmoidFocalLoss(torch.autograd.Function):
    """Focal loss on logits (N, C) with class labels (N,), background is label C.

    weight (N, C) is a constant.
    """

    @staticmethod
    def forward(ctx, logits, labels, gamma=2.0, alpha=0.25, weight=None, reduction="mean"):
        onehot = F.one_hot(labels, logits.shape[1] + 1)[:, :-1].to(logits.dtype)
        p = torch.sigmoid(logits)
        log_p, log_q = F.logsigmoid(logits), F.logsigmoid(-logits)
        loss = -alpha * onehot * (1 - p) ** gamma * log_p - (1 - alpha) * (1 - onehot) * p ** gamma * log_q
        if weight is not None:
            loss = loss * weight
        ctx.save_for_backward(logits, onehot, weight)
        ctx.gamma, ctx.alpha, ctx.reduction = gamma, alpha, reduction
        if reduction == "mean":
            return loss.mean()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        logits, onehot, weight = ctx.saved_tensors
        gamma, alpha = ctx.gamma, ctx.alpha
        p = torch.sigmoid(logits)
        q = 1 - p
        pos = alpha * q ** gamma * (gamma * p * F.logsigmoid(logits) - q)
        neg = (1 - alpha) * p ** gamma * (p - gamma * q * F.logsigmoid(-logits))
        d = onehot * pos + (1 - onehot) * neg
        if weight is not None:
            d = d * weight
        if ctx.reduction == "mean":
            d = d / logits.numel()
        return grad * d, None, None, None, None, None
