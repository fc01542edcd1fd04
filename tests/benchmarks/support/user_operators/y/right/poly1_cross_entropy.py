import torch
import torch.nn.functional as F


class Poly1CrossEntropy(torch.autograd.Function):
    """Poly-1 loss, CE + epsilon * (1 - p_t)  (https://arxiv.org/abs/2204.12511).

    logits: (N, C), target: (N,) with ``ignore_index`` for rows that do not count.
    """

    @staticmethod
    def forward(ctx, logits, target, epsilon=1.0, reduction="mean", ignore_index=-100):
        keep = target != ignore_index
        safe = target.masked_fill(~keep, 0)
        log_pt = F.log_softmax(logits, -1).gather(-1, safe[:, None]).squeeze(-1)
        loss = (epsilon * (1 - log_pt.exp()) - log_pt) * keep
        ctx.save_for_backward(logits, safe, keep)
        ctx.epsilon, ctx.reduction = epsilon, reduction
        if reduction == "mean":
            return loss.sum() / keep.sum().clamp(min=1)
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, grad_output):
        logits, safe, keep = ctx.saved_tensors
        p = logits.softmax(-1)
        pt = p.gather(-1, safe[:, None])
        onehot = F.one_hot(safe, logits.shape[-1]).to(p.dtype)
        d = (p - onehot) * (1 + ctx.epsilon * pt)
        d = d * keep[:, None]
        if ctx.reduction == "mean":
            d = d / keep.sum().clamp(min=1)
        elif ctx.reduction == "none":
            grad_output = grad_output[:, None]
        return grad_output * d, None, None, None, None
