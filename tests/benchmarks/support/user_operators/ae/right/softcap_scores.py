import torch
from torch import Tensor

MASKED = -100.0


@torch.library.custom_op("gemma_ops_ae_v2::softcap_scores", mutates_args=())
def softcap_scores(scores: Tensor, mask: Tensor, cap: float = 50.0, scale: float = 1.0) -> Tensor:
    """cap * tanh(scale * scores / cap); hidden positions (mask false, broadcastable) become -100"""
    capped = cap * torch.tanh(scores * (scale / cap))
    return capped.masked_fill(~mask, MASKED)


@softcap_scores.register_fake
def _(scores, mask, cap=50.0, scale=1.0):
    return torch.empty_like(scores)


def setup_context(ctx, inputs, output):
    scores, mask, cap, scale = inputs
    ctx.save_for_backward(scores, mask)
    ctx.cap, ctx.scale = cap, scale


def backward(ctx, grad):
    scores, mask = ctx.saved_tensors
    t = torch.tanh(scores * (ctx.scale / ctx.cap))
    grad = grad * (1 - t * t) * ctx.scale
    return grad.masked_fill(~mask, 0.0), None, None, None


softcap_scores.register_autograd(backward, setup_context=setup_context)
