import torch
from torch.autograd.function import once_differentiable


def _ce_grad(logits, dim):
    p = logits.softmax(dim)
    return p - torch.eye(len(p), dtype=p.dtype, device=p.device)


class InfoNCE(torch.autograd.Function):
    """Contrastive loss of CLIP / SimCLR.

    Args:
        q, k: (N, D) embeddings, row i of q goes with row i of k
        tau: temperature, 0-dim tensor
        symmetric: also classify q among the rows for each k
    """

    @staticmethod
    def forward(ctx, q, k, tau, symmetric=False):
        logits = q @ k.t() / tau
        loss = (logits.logsumexp(1) - logits.diagonal()).mean()
        if symmetric:
            loss = 0.5 * (loss + (logits.logsumexp(0) - logits.diagonal()).mean())
        ctx.save_for_backward(q, k, tau, logits)
        ctx.symmetric = symmetric
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        q, k, tau, logits = ctx.saved_tensors
        d = _ce_grad(logits, dim=1)
        if ctx.symmetric:
            d = 0.5 * (d + _ce_grad(logits, dim=1))
        d = d * g / len(q)
        return d @ k / tau, d.t() @ q / tau, -(d * logits).sum() / tau, None
