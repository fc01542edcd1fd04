import math

import torch
from torch.autograd.function import once_differentiable


def _scores(q, k, attn_mask, is_causal, scale):
    s = (q @ k.transpose(-2, -1)) * scale
    if attn_mask is not None:
        s = s + attn_mask
    if is_causal:
        lq, lk = s.shape[-2:]
        keep = torch.ones(lq, lk, dtype=torch.bool, device=s.device).tril()
        s = s.masked_fill(~keep, float("-inf"))
    return s


class ScaledDotProductAttention(torch.autograd.Function):
    """softmax(scale * q k' + attn_mask) v.

    q: (..., L, E), k: (..., S, E), v: (..., S, Ev) with equal leading axes;
    attn_mask: additive, broadcastable to (..., L, S).
    """

    @staticmethod
    def forward(ctx, q, k, v, attn_mask=None, is_causal=False, scale=None):
        scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
        p = torch.softmax(_scores(q, k, attn_mask, is_causal, scale), dim=-1)
        out = p @ v
        ctx.save_for_backward(q, k, v, p)
        ctx.scale = scale
        ctx.mask_shape = None if attn_mask is None else attn_mask.shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensors
        dv = p.transpose(-2, -1) @ do
        dp = do @ v.transpose(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        ds = ds * ctx.scale
        dmask = None
        if ctx.mask_shape is not None and ctx.needs_input_grad[3]:
            dmask = ds.sum_to_size(ctx.mask_shape)
        return ds @ k, ds.transpose(-2, -1) @ q, dv, dmask, None, None
