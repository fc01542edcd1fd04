"""Focal loss on logits with optional class balance and normaliser."""
import torch
import torch.nn.functional as F
from torch import Tensor


class _Focal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, target: Tensor, normalizer: Tensor, gamma: float, alpha):
        sign = 2 * target - 1
        z = sign * logits
        w = 1.0 if alpha is None else alpha * target + (1 - alpha) * (1 - target)
        ctx.save_for_backward(logits, target, normalizer)
        ctx.gamma, ctx.alpha = gamma, alpha
        return (w * torch.sigmoid(-z) ** gamma * F.softplus(-z)).sum() / normalizer

    @staticmethod
    def backward(ctx, grad: Tensor):
        logits, target, normalizer = ctx.saved_tensors
        gamma, alpha = ctx.gamma, ctx.alpha
        sign = 2 * target - 1
        z = sign * logits
        q = torch.sigmoid(-z)
        nll = F.softplus(-z)
        w = 1.0 if alpha is None else alpha * target + (1 - alpha) * (1 - target)
        d_logits = -grad / normalizer * w * sign * q ** gamma * (gamma * (1 - q) * nll + q)
        d_norm = -grad * (w * q ** gamma * nll).sum() / normalizer ** 2
        return d_logits, None, d_norm, None


def focal_loss(logits: Tensor, target: Tensor, normalizer=None, gamma: float = 2.0, alpha=0.25) -> Tensor:
    """Sum of the focal losses over `normalizer` (a positive scalar tensor, the number of elements by default)."""
    if target.shape != logits.shape:
        raise ValueError("shapes differ")
    if normalizer is None:
        normalizer = logits.new_tensor(float(logits.numel()))
    return _Focal.apply(logits, target.to(logits.dtype), normalizer, gamma, alpha)
