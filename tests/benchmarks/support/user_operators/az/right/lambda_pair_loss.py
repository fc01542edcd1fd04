from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import softplus


def _pair_weights(scores: Tensor, gains: Tensor, mask: Tensor) -> Tensor:
    """|delta DCG| / ideal DCG of swapping i and j where i has the higher gain; (B, L, L)"""
    order = scores.detach().masked_fill(~mask, float("-inf")).argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    discount = 1 / torch.log2(rank.to(scores.dtype) + 2)
    delta = (gains[:, :, None] - gains[:, None, :]).clamp(min=0) * (discount[:, :, None] - discount[:, None, :]).abs()
    ideal = gains.masked_fill(~mask, 0).sort(dim=1, descending=True).values
    position = torch.arange(gains.size(1), device=gains.device, dtype=scores.dtype)
    ideal_dcg = (ideal / torch.log2(position + 2)).sum(1)
    return delta / ideal_dcg.clamp(min=1e-12)[:, None, None]


class _LambdaPair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, gains, mask):
        both = mask[:, :, None] & mask[:, None, :]
        weight = _pair_weights(scores, gains, mask) * both
        ctx.save_for_backward(scores, gains, mask)
        return (weight * softplus(scores[:, None, :] - scores[:, :, None])).sum((1, 2))

    @staticmethod
    def backward(ctx, grad):
        scores, gains, mask = ctx.saved_tensors
        both = mask[:, :, None] & mask[:, None, :]
        weight = _pair_weights(scores, gains, mask) * both
        push = weight * torch.sigmoid(scores[:, None, :] - scores[:, :, None])
        return grad[:, None] * (push.sum(1) - push.sum(2)), None, None


def lambda_pair_loss(scores: Tensor, gains: Tensor, mask: Optional[Tensor] = None) -> Tensor:
    """Pairwise logistic loss weighted by the change of NDCG (the ranks are taken as constant).

    scores: (B, L); gains: (B, L) labels, constant; mask: (B, L) bool, True for real documents. Returns (B,). A query without
    a relevant document contributes zero.
    """
    if scores.shape != gains.shape:
        raise ValueError("scores and gains must have the same shape")
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    return _LambdaPair.apply(scores, gains, mask)
