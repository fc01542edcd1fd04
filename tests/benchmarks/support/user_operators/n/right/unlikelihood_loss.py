import torch
from torch.autograd.function import once_differentiable


class UnlikelihoodLoss(torch.autograd.Function):
    """Token unlikelihood, -log(1 - p[c]) summed over each step's negative candidates.

    logits: (T, V) scores
    candidates: (T, C) int64 candidate tokens, ``pad_idx`` where there is none.
        A token listed twice counts twice.
    """

    @staticmethod
    def forward(ctx, logits, candidates, pad_idx=-1, reduction="sum"):
        p = torch.softmax(logits, dim=-1)
        valid = candidates.ne(pad_idx)
        idx = candidates.masked_fill(~valid, 0)
        pc = p.gather(1, idx)
        loss = -torch.log1p(-pc) * valid.to(p.dtype)
        ctx.save_for_backward(p, idx, pc, valid)
        ctx.reduction = reduction
        ctx.count = max(int(valid.sum()), 1)
        if reduction == "none":
            return loss
        if reduction == "mean":
            return loss.sum() / ctx.count
        return loss.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        p, idx, pc, valid = ctx.saved_tensors
        g = grad_output.expand(pc.shape)
        if ctx.reduction == "mean":
            g = g / ctx.count
        gpc = g * valid.to(p.dtype) / (1 - pc)
        # d pc / d logits = pc * (onehot - p)
        w = gpc * pc
        grad = -p * w.sum(1, keepdim=True)
        grad = grad.scatter_add(1, idx, w)
        return grad, None, None, None
