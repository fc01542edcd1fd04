import torch
import torch.nn.functional as F


class PolyLoss(torch.autograd.Function):
    """Poly-1 cross entropy  CE + eps * (1 - p_target).

    logits: (N, C); target: (N,) class ids, ignore_index allowed.
    reduction: 'none' | 'sum' | 'mean' (over the targets that are not ignored).
    """

    @staticmethod
    def forward(ctx, logits, target, eps=1.0, ignore_index=-100, reduction="mean"):
        keep = target != ignore_index
        safe = target.masked_fill(~keep, 0)
        logp = F.log_softmax(logits, 1).gather(1, safe[:, None]).squeeze(1)
        loss = (-logp + eps * (1 - logp.exp())) * keep
        ctx.save_for_backward(logits, safe, keep)
        ctx.eps, ctx.reduction = eps, reduction
        if reduction == "mean":
            return loss.sum() / keep.sum().clamp(min=1)
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, grad):
        logits, safe, keep = ctx.saved_tensors
        p = logits.softmax(1)
        pt = p.gather(1, safe[:, None])
        d = (p - F.one_hot(safe, p.size(1))) * (1 + ctx.eps * pt) * keep[:, None]
        if ctx.reduction == "none":
            return d * grad[:, None], None, None, None, None
        if ctx.reduction == "mean":
            d = d / keep.numel()
        return d * grad, None, None, None, None
