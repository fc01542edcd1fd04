import math
import torch
from torch.autograd.function import once_differentiable


class AlibiAttention(torch.autograd.Function):
    """Causal attention with a learned ALiBi slope per head.

    q, k: (H, T, D), v: (H, T, Dv), slopes: (H,) -> (H, T, Dv)
    """

    @staticmethod
    def forward(ctx, q, k, v, slopes):
        T = q.shape[1]
        pos = torch.arange(T, device=q.device)
        dist = (pos[:, None] - pos[None, :]).to(q.dtype)
        s = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        s = s - slopes.view(-1, 1, 1) * dist
        s = s.masked_fill(dist < 0, float("-inf"))
        p = torch.softmax(s, -1)
        ctx.save_for_backward(q, k, v, p, dist)
        return p @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v, p, dist = ctx.saved_tensors
        dv = p.transpose(1, 2) @ do
        dp = do @ v.transpose(1, 2)
        dp = dp - (dp * p).sum(-1, keepdim=True)
        ds = p.mul_(dp)
        dslopes = -(ds * dist).sum((1, 2))
        ds = ds / math.sqrt(q.shape[-1])
        return ds @ k, ds.transpose(1, 2) @ q, dv, dslopes
