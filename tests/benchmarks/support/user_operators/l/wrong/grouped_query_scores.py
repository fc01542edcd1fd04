"""Attention scores for grouped-query attention without repeating the keys."""
import torch
from torch import Tensor


@torch.library.custom_op("gqa_kernels::scores", mutates_args=())
def _scores(q: Tensor, k: Tensor, scale: float) -> Tensor:
    b, h, t, d = q.shape
    g, s = k.shape[1], k.shape[2]
    qg = q.reshape(b, g, h // g, t, d)
    return (torch.einsum("bgrtd,bgsd->bgrts", qg, k) * scale).reshape(b, h, t, s)


@_scores.register_fake
def _(q, k, scale):
    return q.new_empty(q.shape[0], q.shape[1], q.shape[2], k.shape[2])


def _setup(ctx, inputs, output):
    q, k, ctx.scale = inputs
    ctx.save_for_backward(q, k)


def _backward(ctx, grad):
    q, k = ctx.saved_tensors
    b, h, t, d = q.shape
    g, s = k.shape[1], k.shape[2]
    gg = grad.reshape(b, g, h // g, t, s) * ctx.scale
    grad_q = torch.einsum("bgrts,bgsd->bgrtd", gg, k).reshape(b, h, t, d)
    qg = q.reshape(b, h // g, g, t, d)
    grad_k = torch.einsum("bgrts,brgtd->bgsd", gg, qg)
    return grad_q, grad_k, None


_scores.register_autograd(_backward, setup_context=_setup)


def grouped_query_scores(q: Tensor, k: Tensor, scale: float = 1.0) -> Tensor:
    """scale * q k^T where consecutive query heads share a key head.

    q: (B, H, T, D), k: (B, G, S, D) with H a multiple of G; head h uses key head h // (H / G).
    Returns (B, H, T, S).
    """
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} query heads cannot share {k.shape[1]} key heads")
    return _scores(q, k, scale)
