import torch
from torch.autograd.function import once_differentiable


def _attend(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


class MaskedAttentionPool(torch.autograd.Function):
    """x (B, T, D), scores (B, T), mask (B, T) -> (B, D). An empty sequence gives zeros."""

    @staticmethod
    def forward(ctx, x, scores, mask):
        ctx.save_for_backward(x, scores, mask)
        p = _attend(scores, mask).nan_to_num(0.0)
        return torch.einsum("bt,btd->bd", p, x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, scores, mask = ctx.saved_tensors
        p = _attend(scores, mask).nan_to_num(0.0)
        dp = torch.einsum("bd,btd->bt", grad, x)
        ds = p * (dp - (p * dp).sum(1, keepdim=True))
        return p[..., None] * grad[:, None], ds, None
