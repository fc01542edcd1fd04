"""Scaled dot-product attention with linear position biases (ALiBi), hand-written backward."""
import math
from typing import Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def alibi_slopes(n_heads: int) -> Tensor:
    """Geometric slopes of the ALiBi paper, for a power of two of heads."""
    start = 2.0 ** (-8.0 / n_heads)
    return torch.tensor([start ** (i + 1) for i in range(n_heads)])


class AlibiAttention(torch.autograd.Function):
    """softmax(scale * q k^T - slope_h * |i - j|) v

    Shapes:
        q: (B, H, T, D), k: (B, H, S, D), v: (B, H, S, E), slopes: (H,)
        returns (B, H, T, E)

    Args:
        causal: mask keys that come after the query; queries are aligned with the last T keys (S >= T).
        scale: factor on the scores, 1 / sqrt(D) if None.
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, causal: bool = True,
                scale: Optional[float] = None) -> Tensor:
        T, S = q.size(-2), k.size(-2)
        assert slopes.shape == (q.size(1),), "one slope per head"
        assert S >= T, "more queries than keys"
        scale = scale if scale is not None else 1.0 / math.sqrt(q.size(-1))
        pos_q = torch.arange(S - T, S, device=q.device)
        pos_k = torch.arange(S, device=q.device)
        dist = (pos_q[:, None] - pos_k[None, :]).abs().to(q.dtype)
        scores = torch.matmul(q, k.transpose(-1, -2)) * scale
        scores = scores - slopes.view(-1, 1, 1) * dist
        if causal:
            scores = scores.masked_fill(pos_k[None, :] > pos_q[:, None], float("-inf"))
        attn = torch.softmax(scores, dim=-1)
        ctx.save_for_backward(q, k, v, attn, dist)
        ctx.scale = scale
        return torch.matmul(attn, v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out: Tensor):
        q, k, v, attn, dist = ctx.saved_tensors
        grad_v = torch.matmul(attn.transpose(-1, -2), grad_out)
        d_attn = torch.matmul(grad_out, v.transpose(-1, -2))
        d_scores = attn * (d_attn - (d_attn * attn).sum(-1, keepdim=True))
        grad_slopes = -(d_scores * dist).sum(dim=(0, 2, 3))
        grad_q = torch.matmul(d_scores, k) * ctx.scale
        grad_k = torch.matmul(d_scores.transpose(-1, -2), q) * ctx.scale
        return grad_q, grad_k, grad_v, grad_slopes, None, None
