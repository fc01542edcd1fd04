import torch
from torch import nn


class _Unlikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, negatives, eps):
        ctx.save_for_backward(logits, negatives)
        ctx.eps = eps
        real = negatives >= 0
        p = logits.softmax(-1).gather(-1, negatives.clamp(min=0))
        return -((1 - p).clamp(min=eps).log() * real).sum() / real.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad):
        logits, negatives = ctx.saved_tensors
        real = negatives >= 0
        prob = logits.softmax(-1)
        at = negatives.clamp(min=0)
        rest = 1 - prob.gather(-1, at)
        d = grad * real * (rest > ctx.eps) / rest.clamp(min=ctx.eps) / real.sum().clamp(min=1)
        g = torch.zeros_like(prob).scatter_add(-1, at, d)
        return prob * (g - (prob * g).sum(-1, keepdim=True)), None, None


class TokenUnlikelihood(nn.Module):
    """Unlikelihood loss on unwanted tokens.

    logits (B, T, V); negatives (B, T, K) token ids, -1 where there are fewer than K. A token that
    is listed twice counts twice.
    """

    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, logits, negatives):
        return _Unlikelihood.apply(logits, negatives, self.eps)
