import math
from typing import Optional

import torch
from torch import Tensor


def _capped(q: Tensor, k: Tensor, cap: float) -> Tensor:
    return torch.tanh(q @ k.transpose(-1, -2) / (math.sqrt(q.shape[-1]) * cap))


def _causal(n: int, window: Optional[int], device) -> Tensor:
    i = torch.arange(n, device=device)
    keep = i[:, None] >= i[None, :]
    if window is not None:
        keep &= i[:, None] - i[None, :] < window
    return keep


class SoftcapAttention(torch.autograd.Function):
    """Causal attention with tanh soft-capped scores and an optional sliding window."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, cap: float, window: Optional[int] = None) -> Tensor:
        t = _capped(q, k, cap)
        keep = _causal(q.shape[-2], window, q.device)
        p = (cap * t).masked_fill(~keep, float("-inf")).softmax(-1)
        ctx.save_for_backward(q, k, v, t)
        ctx.cap, ctx.window = cap, window
        return p @ v

    @staticmethod
    def backward(ctx, go: Tensor):
        q, k, v, t = ctx.saved_tensors
        keep = _causal(q.shape[-2], ctx.window, q.device)
        p = (ctx.cap * t).masked_fill(~keep, float("-inf")).softmax(-1)
        gv = p.transpose(-1, -2) @ go
        gp = go @ v.transpose(-1, -2)
        gs = p * (gp - (p * gp).sum(-1, keepdim=True))
        gs = gs * (1 - t * t) / math.sqrt(q.shape[-1])
        return gs @ k, gs.transpose(-1, -2) @ q, gv, None, None
