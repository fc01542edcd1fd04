from typing import Optional

import torch
from torch import Tensor


def distance(scores: Tensor) -> Tensor:
    q, k = scores.shape[-2:]
    i = torch.arange(k - q, k, device=scores.device)[:, None]
    return i - torch.arange(k, device=scores.device)


@torch.library.custom_op("longctx::alibi_softmax", mutates_args=())
def alibi_softmax(scores: Tensor, slopes: Tensor, pad: Optional[Tensor] = None, causal: bool = True) -> Tensor:
    """softmax(scores - slope * distance) over the keys

    scores (B, H, Q, K), slopes (H,), pad (B, K) bool with True at padding.
    The last query stands at the last key. Rows without any key are zero.
    """
    d = distance(scores)
    z = scores - slopes[:, None, None] * d.abs()
    hide = torch.zeros_like(z, dtype=torch.bool)
    if causal:
        hide = hide | (d < 0)
    if pad is not None:
        hide = hide | pad[:, None, None]
    return z.masked_fill(hide, torch.finfo(z.dtype).min).softmax(-1) * ~hide


@alibi_softmax.register_fake
def _(scores, slopes, pad=None, causal=True):
    return torch.empty_like(scores)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(output)


def backward(ctx, grad):
    p, = ctx.saved_tensors
    gz = p * (grad - (p * grad).sum(-1, keepdim=True))
    g_slopes = -(gz * distance(p).abs()).sum((0, 2, 3))
    return gz, g_slopes, None, None


alibi_softmax.register_autograd(backward, setup_context=setup_context)
