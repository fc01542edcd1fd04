import math

import torch
from torch.autograd.function import once_differentiable


class SoftcapAttention(torch.autograd.Function):
    """Attention with capped logits, cap * tanh(qk / cap).

    q (B, H, T, D), k and v (B, H, S, D); `causal` aligns the ends of the two sequences.
    """

    @staticmethod
    def forward(ctx, q, k, v, cap=5.0, causal=False):
        scale = 1 / math.sqrt(q.shape[-1])
        t = torch.tanh(q @ k.mT * (scale / cap))
        s = cap * t
        if causal:
            T, S = s.shape[-2:]
            hide = torch.ones(T, S, dtype=torch.bool, device=s.device).triu(S - T + 1)
            s = s.masked_fill(hide, float("-inf"))
        p = s.softmax(-1)
        ctx.save_for_backward(q, k, v, p, t)
        ctx.scale = scale
        return p @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, go):
        q, k, v, p, t = ctx.saved_tensors
        gv = p.mT @ go
        gp = go @ v.mT
        gs = p.mul_(gp - (gp * p).sum(-1, keepdim=True))
        gs = gs * (1 - t * t) * ctx.scale
        return gs @ k, gs.mT @ q, gv, None, None
