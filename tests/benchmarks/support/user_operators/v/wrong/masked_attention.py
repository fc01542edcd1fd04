import math

import torch


class MaskedAttention(torch.autograd.Function):
    """softmax(q k^T / sqrt(d)) v with a key padding mask; probabilities are recomputed in backward.

    q (B, H, N, D), k and v (B, H, M, D), key_mask (B, M) bool, True = attend.
    Each sample must have at least one key.
    """

    @staticmethod
    def probs(q, k, key_mask):
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        s = s.masked_fill(~key_mask[:, None, None, :], float("-inf"))
        return s.softmax(-1)

    @staticmethod
    def forward(ctx, q, k, v, key_mask):
        p = MaskedAttention.probs(q, k, key_mask)
        ctx.save_for_backward(q, k, v, key_mask)
        return p @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, key_mask = ctx.saved_tensors
        p = MaskedAttention.probs(q, k, key_mask)
        dv = p.transpose(-1, -2) @ do
        dp = do @ v.transpose(-1, -2)
        delta = (do * (p @ v)).sum(-1, keepdim=True)
        ds = p * (dp - delta) / math.sqrt(k.shape[-2])
        return ds @ k, ds.transpose(-1, -2) @ q, dv, None
