import math

import torch
from torch.autograd import Function


class ScaledEmbedding(Function):
    """Rows of weight (V, D) times sqrt(D) for ids of any shape; ``padding_idx`` gives zero rows."""

    @staticmethod
    def forward(ctx, weight, ids, padding_idx=None):
        if padding_idx is not None and not 0 <= padding_idx < weight.size(0):
            raise ValueError("padding_idx out of range")
        ctx.save_for_backward(ids)
        ctx.size = weight.shape
        ctx.padding_idx = padding_idx
        out = weight[ids] * math.sqrt(weight.size(1))
        if padding_idx is not None:
            out = out.masked_fill((ids == padding_idx).unsqueeze(-1), 0.0)
        return out

    @staticmethod
    def backward(ctx, grad):
        ids, = ctx.saved_tensors
        g = grad * math.sqrt(ctx.size[1])
        if ctx.padding_idx is not None:
            g = g * (ids != ctx.padding_idx).unsqueeze(-1)
        g_weight = grad.new_zeros(ctx.size).index_add(0, ids.flatten(), g.reshape(-1, ctx.size[1]))
        return g_weight, None, None
