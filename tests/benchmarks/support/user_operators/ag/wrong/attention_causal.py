import math
from typing import Optional

import torch
from torch.autograd import Function


class FusedAttention(Function):
    """Attention without storing the probabilities.

    q: [B, H, Tq, d]   k: [B, H, Tk, d]   v: [B, H, Tk, dv]
    key_mask: [B, Tk] bool, True = may be attended to. Rows without any key give zeros.
    """

    @staticmethod
    def _probs(q, k, key_mask, scale, causal):
        s = torch.matmul(q, k.transpose(-1, -2)) * scale
        allowed = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device)
        if causal:
            allowed = allowed.tril(s.shape[-1] - s.shape[-2])
        if key_mask is not None:
            allowed = allowed & key_mask[:, None, None, :]
        allowed = allowed.expand_as(s)
        s = s.masked_fill(~allowed, torch.finfo(s.dtype).min)
        p = torch.softmax(s, dim=-1)
        return p * allowed.to(p.dtype)

    @staticmethod
    def forward(ctx, q, k, v, key_mask: Optional[torch.Tensor] = None, scale: Optional[float] = None, causal: bool = False):
        scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
        p = FusedAttention._probs(q, k, key_mask, scale, causal)
        ctx.save_for_backward(q, k, v, key_mask)
        ctx.scale, ctx.causal = scale, causal
        return p @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, key_mask = ctx.saved_tensors
        p = FusedAttention._probs(q.bfloat16(), k.bfloat16(), key_mask, ctx.scale, ctx.causal).to(v.dtype)
        dv = p.transpose(-1, -2) @ do
        dp = do @ v.transpose(-1, -2)
        ds = p * (dp - (p * dp).sum(-1, keepdim=True))
        dq = ds @ k * ctx.scale
        dk = ds.transpose(-1, -2) @ q * ctx.scale
        return dq, dk, dv, None, None, None
