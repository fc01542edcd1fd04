import torch
from torch import Tensor


class _TransRec(torch.autograd.Function):
    @staticmethod
    def forward(ctx, user, prev, item, bias, squared, eps):
        diff = (user + prev)[:, None] - item
        dist = diff.square().sum(-1)
        if not squared:
            dist = (dist + eps).sqrt()
        ctx.save_for_backward(user, prev, item)
        ctx.squared, ctx.eps = squared, eps
        return bias - dist

    @staticmethod
    def backward(ctx, grad):
        user, prev, item = ctx.saved_tensors
        diff = (user + prev)[:, None] - item
        if ctx.squared:
            pull = 2 * grad[..., None] * diff
        else:
            pull = grad[..., None] * diff / (diff.square().sum(-1, keepdim=True) + ctx.eps).sqrt()
        towards = -pull.sum(1)
        return towards, None, pull, grad.clone(), None, None


def transrec_score(user: Tensor, prev: Tensor, item: Tensor, bias: Tensor, squared: bool = True, eps: float = 1e-6) -> Tensor:
    """Translation score bias - |user + prev - item|^2 (or the distance itself).

    user, prev: (B, D) with prev the embedding of the previous item; item: (B, N, D); bias: (B, N).
    """
    if user.shape != prev.shape or item.shape[:2] != bias.shape:
        raise ValueError("shapes of user and prev, and of item and bias, must agree")
    return _TransRec.apply(user, prev, item, bias, squared, eps)
