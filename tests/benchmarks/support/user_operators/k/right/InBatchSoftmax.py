"""Sampled softmax with in-batch negatives for two-tower retrieval (Yi et al., 2019)."""
from typing import Optional

import torch
from torch import Tensor, nn
from torch.autograd import Function


def _logits(user: Tensor, item: Tensor, log_q: Tensor, tau: float, ids: Optional[Tensor]) -> Tensor:
    z = user @ item.t() / tau - log_q
    if ids is not None:
        same = ids.unsqueeze(0) == ids.unsqueeze(1)
        same = same & ~torch.eye(len(ids), dtype=torch.bool, device=ids.device)
        z = z.masked_fill(same, float("-inf"))
    return z


class _InBatch(Function):
    @staticmethod
    def forward(ctx, user, item, log_q, tau, ids):
        z = _logits(user, item, log_q, tau, ids)
        ctx.tau = tau
        ctx.save_for_backward(user, item, log_q, ids)
        return (torch.logsumexp(z, 1) - z.diagonal()).mean()

    @staticmethod
    def backward(ctx, grad):
        user, item, log_q, ids = ctx.saved_tensors
        z = _logits(user, item, log_q, ctx.tau, ids)
        eye = torch.eye(z.size(0), dtype=z.dtype, device=z.device)
        d = grad * (torch.softmax(z, 1) - eye) / z.size(0)
        return d @ item / ctx.tau, d.t() @ user / ctx.tau, -d.sum(0), None, None


class InBatchSoftmax(nn.Module):
    """Cross entropy of every user against all items of the batch.

    Args:
        temperature: divides the inner products
        remove_accidental_hits: do not count a copy of the positive item as a negative

    forward(user (B, D), item (B, D), item_ids (B,) int, log_q (B,) or None): scalar.
    log_q is the log of the sampling probability of each item.
    """

    def __init__(self, temperature: float = 1.0, remove_accidental_hits: bool = True):
        super().__init__()
        self.temperature = temperature
        self.remove_accidental_hits = remove_accidental_hits

    def forward(self, user, item, item_ids, log_q: Optional[Tensor] = None):
        if log_q is None:
            log_q = user.new_zeros(user.size(0))
        ids = item_ids if self.remove_accidental_hits else None
        return _InBatch.apply(user, item, log_q, self.temperature, ids)
