import torch
import torch.nn.functional as F


class Poly1CrossEntropy(torch.autograd.Function):
    """
    Poly-1 loss: CE(logits, target) + epsilon * (1 - p_target).

    logits (N, C), target (N,) of class indices; rows with ``ignore_index`` count for nothing.
    The smoothing concerns the cross entropy only.  reduction: 'mean' (over the rows that count),
    'sum' or 'none'.
    """

    @staticmethod
    def forward(
        ctx, logits, target, epsilon=1.0, label_smoothing=0.0, ignore_index=-100, reduction="mean"
    ):
        valid = target != ignore_index
        safe = target.masked_fill(~valid, 0)
        logp = F.log_softmax(logits, -1)
        logpt = logp.gather(1, safe[:, None]).squeeze(1)
        ce = -(1 - label_smoothing) * logpt - label_smoothing * logp.mean(-1)
        loss = (ce + epsilon * (1 - logpt.exp())).masked_fill(~valid, 0)
        ctx.save_for_backward(logits, safe, valid)
        ctx.opts = epsilon, label_smoothing, reduction
        if reduction == "mean":
            return loss.sum() / valid.sum().clamp(min=1)
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, grad):
        logits, safe, valid = ctx.saved_tensors
        epsilon, smoothing, reduction = ctx.opts
        p = logits.softmax(-1)
        onehot = F.one_hot(safe, logits.shape[-1]).to(p.dtype)
        q = (1 - smoothing) * onehot + smoothing / logits.shape[-1]
        pt = (p * onehot).sum(-1, keepdim=True)
        d = (p - q) - epsilon * pt * (onehot - p)
        if reduction == "mean":
            grad = grad / valid.sum().clamp(min=1)
        w = grad * valid
        return w[:, None] * d, None, None, None, None, None
