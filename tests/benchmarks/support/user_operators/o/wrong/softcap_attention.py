import math

import torch
from torch.autograd import Function


class SoftcapAttention(Function):
    """Attention whose scores are squashed to (-cap, cap) by ``cap * tanh(s / cap)``.

    q: (B, H, T, D)   k: (B, H, S, D)   v: (B, H, S, E)
    mask: bool, broadcastable to (B, H, T, S), True = attend
    """

    @staticmethod
    def _scores(q, k, mask, cap, scale):
        s = q @ k.transpose(-1, -2) * scale
        t = None
        if cap is not None:
            t = torch.tanh(s / cap)
            s = cap * t
        if mask is not None:
            s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
        return s.softmax(-1), t

    @staticmethod
    def forward(ctx, q, k, v, mask=None, cap=None, scale=None):
        if not (q.shape[:-2] == k.shape[:-2] == v.shape[:-2]):
            raise ValueError("q, k and v need the same batch and head sizes")
        scale = 1.0 / math.sqrt(q.size(-1)) if scale is None else scale
        ctx.save_for_backward(q, k, v, mask)
        ctx.cap, ctx.scale = cap, scale
        p, _ = SoftcapAttention._scores(q, k, mask, cap, scale)
        return p @ v

    @staticmethod
    def backward(ctx, grad):
        q, k, v, mask = ctx.saved_tensors
        p, t = SoftcapAttention._scores(q, k, mask, ctx.cap, ctx.scale)
        gp = grad @ v.transpose(-1, -2)
        gs = p * (gp - (gp * p).sum(-1, keepdim=True))
        if mask is not None:
            gs = gs.masked_fill(~mask, 0.0)
        gs = gs * ctx.scale
        return gs @ k, gs.transpose(-1, -2) @ q, p.transpose(-1, -2) @ grad, None, None, None
