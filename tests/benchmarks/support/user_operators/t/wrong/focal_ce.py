import torch


def _unreduce(grad, valid, reduction):
    if reduction == "mean":
        return grad * valid / valid.sum().clamp(min=1)
    return grad * valid


class FocalCE(torch.autograd.Function):
    """Multi-class focal loss.

    Args:
        logits: (N, C)
        target: (N,) classes, ``ignore_index`` is skipped
        gamma: focusing parameter, >= 1
        alpha: optional (C,) class weights, fixed
        reduction: "mean" (over what is not ignored), "sum" or "none"
    """

    @staticmethod
    def forward(ctx, logits, target, gamma=2.0, alpha=None, reduction="mean", ignore_index=-100):
        valid = (target != ignore_index).to(logits.dtype)
        t = target.clamp(min=0, max=logits.shape[1] - 1)
        ctx.save_for_backward(logits, t, valid, alpha)
        ctx.gamma, ctx.reduction = gamma, reduction
        logpt = logits.log_softmax(1).gather(1, t[:, None])[:, 0]
        loss = -((1 - logpt.exp()) ** gamma) * logpt * valid
        if alpha is not None:
            loss = loss * alpha[t]
        if reduction == "mean":
            return loss.sum() / valid.sum().clamp(min=1)
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, grad):
        logits, t, valid, alpha = ctx.saved_tensors
        g = ctx.gamma
        logp = logits.log_softmax(1)
        logpt = logp.gather(1, t[:, None])[:, 0]
        pt = logpt.exp()
        d = g * (1 - pt) ** (g - 1) * pt * logpt - (1 - pt) ** g
        d = d * _unreduce(grad, valid, ctx.reduction)
        onehot = torch.nn.functional.one_hot(t, logits.shape[1]).to(logits.dtype)
        return d[:, None] * (onehot - logp.exp()), None, None, None, None, None
