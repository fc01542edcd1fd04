import torch


class SmoothedCrossEntropy(torch.autograd.Function):
    """Cross entropy with label smoothing, class weights and ignore_index; mean over the kept targets'
    weights (as torch does), or sum.

    logits: (N, C), target: (N,) integers, weight: (C,) or None
    """

    @staticmethod
    def _target_weights(logits, target, weight, smoothing, ignore_index):
        n, c = logits.shape
        valid = target != ignore_index
        t = target.masked_fill(~valid, 0)
        w = torch.ones(c, dtype=logits.dtype, device=logits.device) if weight is None else weight
        q = (smoothing / c) * w.expand(n, c)
        q = q.scatter_add(1, t[:, None], (1 - smoothing) * w[t][:, None])
        norm = (w[t] * valid).sum()
        return q * valid[:, None], norm

    @staticmethod
    def forward(ctx, logits, target, weight=None, smoothing=0.0, ignore_index=-100, reduction="mean"):
        q, norm = SmoothedCrossEntropy._target_weights(logits, target, weight, smoothing, ignore_index)
        ctx.save_for_backward(logits, target, weight)
        ctx.opts = (smoothing, ignore_index, reduction)
        loss = -(q * logits.log_softmax(1)).sum()
        return loss / norm if reduction == "mean" else loss

    @staticmethod
    def backward(ctx, g):
        logits, target, weight = ctx.saved_tensors
        smoothing, ignore_index, reduction = ctx.opts
        q, norm = SmoothedCrossEntropy._target_weights(logits, target, weight, smoothing, ignore_index)
        p = logits.softmax(1)
        grad = p * q.sum(1, keepdim=True) - q
        if reduction == "mean":
            grad = grad / norm
        return g * grad, None, None, None, None, None
