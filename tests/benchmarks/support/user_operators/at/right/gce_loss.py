import torch
import torch.nn.functional as F


class _GCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, q, ignore_index):
        valid = target != ignore_index
        logp = F.log_softmax(logits, 1).gather(1, target.masked_fill(~valid, 0)[:, None]).squeeze(1)
        ctx.save_for_backward(logits, target)
        ctx.q, ctx.ignore_index = q, ignore_index
        loss = -logp if q == 0 else -torch.expm1(q * logp) / q
        return loss.masked_fill(~valid, 0).sum() / valid.sum()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        valid = target != ctx.ignore_index
        safe = target.masked_fill(~valid, 0)
        p = F.softmax(logits, 1)
        py = p.gather(1, safe[:, None])
        g = py ** ctx.q * (p - F.one_hot(safe, logits.size(1)))
        g = g * valid[:, None]
        return grad / valid.sum() * g, None, None, None


def generalized_cross_entropy(logits, target, q=0.7, ignore_index=-100):
    """(1 - p_y^q) / q, q = 0 is cross entropy (Zhang & Sabuncu 2018); logits (N, C), mean over valid targets"""
    return _GCE.apply(logits, target, q, ignore_index)
