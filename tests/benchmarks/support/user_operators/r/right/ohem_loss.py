import torch
import torch.nn as nn
import torch.nn.functional as F


class _OHEM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, keep, ignore_index):
        valid = target != ignore_index
        t = target.masked_fill(~valid, 0)
        ce = -F.log_softmax(logits, 1).gather(1, t[:, None])[:, 0]
        ce = ce.masked_fill(~valid, -1)
        n = max(1, min(keep, int(valid.sum())))
        ctx.hard = ce.topk(n)[1]
        ctx.n = n
        ctx.save_for_backward(logits, t, valid)
        return ce[ctx.hard].clamp(min=0).mean()

    @staticmethod
    def backward(ctx, g):
        logits, t, valid = ctx.saved_tensors
        w = torch.zeros_like(logits[:, 0]).index_fill(0, ctx.hard, 1.0) * valid
        p = logits.softmax(1) - F.one_hot(t, logits.shape[1])
        return g / ctx.n * w[:, None] * p, None, None, None


class OHEMCrossEntropy(nn.Module):
    """Cross entropy of the hardest `keep` samples only (online hard example mining)."""

    def __init__(self, keep=64, ignore_index=-100):
        super().__init__()
        if keep < 1:
            raise ValueError("keep must be at least 1")
        self.keep = keep
        self.ignore_index = ignore_index

    def forward(self, logits, target):
        return _OHEM.apply(logits, target, self.keep, self.ignore_index)
