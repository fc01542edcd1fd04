import torch
from torch.autograd.function import once_differentiable


class ListMLE(torch.autograd.Function):
    """Plackett-Luce loss per list.

    scores, relevance: (B, L); mask: (B, L), False at padding. -> (B,)
    """

    @staticmethod
    def forward(ctx, scores, relevance, mask):
        order = relevance.masked_fill(~mask, float("-inf")).argsort(dim=-1, descending=True, stable=True)
        s, m = scores.gather(1, order), mask.gather(1, order)
        tail = s.masked_fill(~m, float("-inf")).flip(-1).logcumsumexp(-1).flip(-1)
        ctx.save_for_backward(s, tail)
        ctx.order, ctx.m = order, m
        return torch.where(m, tail - s, torch.zeros_like(s)).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        s, tail = ctx.saved_tensors
        m = ctx.m
        later = torch.ones(s.shape[1], s.shape[1], dtype=torch.bool, device=s.device).triu()
        p = (s[:, None, :] - tail[:, :, None]).masked_fill(~(later & m[:, :, None] & m[:, None, :]), float("-inf")).exp()
        gs = (p.sum(1) - m.to(s.dtype)) * g[:, None]
        return gs.gather(1, ctx.order), None, None
