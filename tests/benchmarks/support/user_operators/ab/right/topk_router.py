from typing import Tuple

import torch
from torch import Tensor


class TopKRouter(torch.autograd.Function):
    """Softmax router of a mixture of experts.

    Args:
        logits: (tokens, experts)
        k: experts per token
        renorm: make the k weights of a token sum to one before scaling
        scaling: ``routed_scaling_factor``
    Returns:
        weights (tokens, k) and the experts' indices (tokens, k), not differentiable.
    """

    @staticmethod
    def forward(ctx, logits: Tensor, k: int, renorm: bool = True, scaling: float = 1.0) -> Tuple[Tensor, Tensor]:
        probs = logits.softmax(-1)
        top, idx = probs.topk(k, dim=-1)
        ctx.save_for_backward(logits, idx)
        ctx.renorm, ctx.scaling = renorm, scaling
        ctx.mark_non_differentiable(idx)
        if renorm:
            top = top / top.sum(-1, keepdim=True)
        return top * scaling, idx

    @staticmethod
    def backward(ctx, gw: Tensor, _):
        logits, idx = ctx.saved_tensors
        probs = logits.softmax(-1)
        g = gw * ctx.scaling
        if ctx.renorm:
            top = probs.gather(-1, idx)
            total = top.sum(-1, keepdim=True)
            share = top / total
            g = (g - (g * share).sum(-1, keepdim=True)) / total
        gp = torch.zeros_like(probs).scatter(-1, idx, g)
        gl = probs * (gp - (gp * probs).sum(-1, keepdim=True))
        return gl, None, None, None
