import torch
from torch.autograd.function import once_differentiable


class TopKGate(torch.autograd.Function):
    """Top-k routing weights.

    Args:
        logits: (T, E) router logits
        k: experts per token
        renormalize: divide the k kept probabilities by their sum

    Returns:
        weights (T, k), indices (T, k) as torch.topk orders them, and importance (E,), the sum of
        the router's probabilities over the tokens, for a balancing loss.
    """

    @staticmethod
    def forward(ctx, logits, k=2, renormalize=True):
        probs = logits.softmax(-1)
        top, idx = probs.topk(k, dim=-1)
        total = top.sum(-1, keepdim=True)
        weights = top / total if renormalize else top
        ctx.save_for_backward(probs, weights, total, idx)
        ctx.renormalize = renormalize
        ctx.mark_non_differentiable(idx)
        return weights, idx, probs.sum(0)

    @staticmethod
    @once_differentiable
    def backward(ctx, g_weights, _g_idx, g_importance):
        probs, weights, total, idx = ctx.saved_tensors
        g_top = g_weights
        if ctx.renormalize:
            g_top = (g_weights - (g_weights * weights).sum(-1, keepdim=True)) / total
        g_probs = torch.zeros_like(probs).scatter(-1, idx, g_top)
        g_logits = probs * (g_probs - (g_probs * probs).sum(-1, keepdim=True))
        return g_logits, None, None
