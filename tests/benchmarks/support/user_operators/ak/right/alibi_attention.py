import torch
from torch.autograd.function import once_differentiable


class AlibiAttention(torch.autograd.Function):
    """softmax(q k^T / sqrt(d) - slope |i - j|) v

    q, k, v: (B, H, T, D). slopes: (H,) or None.
    """

    @staticmethod
    def forward(ctx, q, k, v, slopes=None, causal=True):
        n, m = q.shape[-2], k.shape[-2]
        i = torch.arange(n, device=q.device)[:, None]
        j = torch.arange(m, device=q.device)
        scale = q.shape[-1] ** -0.5
        s = q @ k.transpose(-1, -2) * scale
        dist = (i - j).abs().to(q.dtype)
        if slopes is not None:
            s = s - slopes[:, None, None] * dist
        if causal:
            s = s.masked_fill(j > i, float("-inf"))
        p = s.softmax(-1)
        ctx.save_for_backward(q, k, v, p)
        ctx.dist, ctx.scale, ctx.biased = dist, scale, slopes is not None
        return p @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        gv = p.transpose(-1, -2) @ g
        gp = g @ v.transpose(-1, -2)
        gs = p * (gp - (gp * p).sum(-1, keepdim=True))
        gq = gs @ k * ctx.scale
        gk = gs.transpose(-1, -2) @ q * ctx.scale
        if not ctx.biased:
            return gq, gk, gv, None, None
        return gq, gk, gv, -(gs * ctx.dist).sum((0, 2, 3)), None
