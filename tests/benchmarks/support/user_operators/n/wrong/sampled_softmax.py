import torch
from torch.autograd.function import once_differentiable


class InBatchSoftmax(torch.autograd.Function):
    """Two-tower in-batch softmax with logQ correction.

    query: (B, D); item: (B, D); item_ids: (B,) ids, other rows holding the same item are
    not counted as negatives; log_q: (B,) log of the sampling probability, or None.
    Returns the mean loss over the batch.
    """

    @staticmethod
    def forward(ctx, query, item, item_ids, log_q=None, tau=0.1):
        logits = query @ item.t() / tau
        if log_q is not None:
            logits = logits - log_q.unsqueeze(0)
        same = item_ids.unsqueeze(0) == item_ids.unsqueeze(1)
        same.fill_diagonal_(False)
        logits = logits.masked_fill(same, float("-inf"))
        logp = logits.log_softmax(dim=1)
        ctx.save_for_backward(query, item, logp)
        ctx.tau = tau
        ctx.corrected = log_q is not None
        return -logp.diagonal().mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        query, item, logp = ctx.saved_tensors
        B = query.size(0)
        d = logp.exp()
        d.diagonal().sub_(1.0)
        d = d * (grad_loss / B)
        grad_logq = -d.sum(0) if ctx.corrected and ctx.needs_input_grad[3] else None
        d = d / ctx.tau
        return d @ item, d @ query, None, grad_logq, None
