import torch
from torch.autograd.function import once_differentiable


class ListMLE(torch.autograd.Function):
    # scores, relevance, mask: (B, N); mask is True where there is a document

    @staticmethod
    def forward(ctx, scores, relevance, mask=None):
        if mask is None:
            mask = torch.ones_like(scores, dtype=torch.bool)
        order = relevance.to(scores.dtype).masked_fill(~mask, float("-inf")).argsort(dim=1, descending=True, stable=True)
        m = mask.gather(1, order)
        s = scores.gather(1, order).masked_fill(~m, float("-inf"))
        lse = s.flip(1).logcumsumexp(1).flip(1)
        ctx.save_for_backward(s, lse, order, m)
        return (lse - s).masked_fill(~m, 0.0).sum(1).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        s, lse, order, m = ctx.saved_tensors
        top = s.amax(1, keepdim=True)
        inv = torch.exp(top - lse).masked_fill(~m, 0.0)
        d = (torch.exp(s - top) * inv.cumsum(1) - 1.0).masked_fill(~m, 0.0)
        d = d * grad / s.shape[0]
        return torch.zeros_like(d).scatter(1, order, d), None, None
