import math

import torch


class SDPA(torch.autograd.Function):
    """
    Scaled dot product attention, q (..., L, d), k (..., S, d), v (..., S, e).

    ``mask``: bool, True where attention is allowed, or None; ``scale``: 1/sqrt(d) by default.
    """

    @staticmethod
    def forward(ctx, q, k, v, mask=None, scale=None):
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        s = q @ k.mT * scale
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        ctx.save_for_backward(q, k, v, mask)
        ctx.scale = scale
        return s.softmax(-1) @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, mask = ctx.saved_tensors
        s = q @ k.mT * ctx.scale
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        p = s.softmax(-1)
        dv = p.mT @ do
        dp = do @ v.mT
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
        return ds @ k, ds.mT @ q, dv, None, None
