import torch
from torch.autograd.function import once_differentiable


class SoftcapAttention(torch.autograd.Function):
    """softmax(cap * tanh(q k^T * scale / cap)) v with a key padding mask (B, S), True = may be seen"""

    @staticmethod
    def forward(ctx, q, k, v, key_mask=None, cap=30.0, scale=None):
        scale = q.size(-1) ** -0.5 if scale is None else scale
        t = torch.tanh(q @ k.transpose(-2, -1) * (scale / cap))
        s = cap * t
        if key_mask is not None:
            s = s.masked_fill(~key_mask[:, None, None, :], float("-inf"))
        p = torch.softmax(s, -1)
        ctx.save_for_backward(q, k, v, t, p)
        ctx.scale = scale
        return p @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        q, k, v, t, p = ctx.saved_tensors
        gv = p.transpose(-2, -1) @ g
        gp = g @ v.transpose(-2, -1)
        gs = p * (gp - (gp * p).sum(-1, keepdim=True))
        gs = gs.mul_(t.square_().neg_().add_(1))
        gs *= ctx.scale
        gq = gs @ k
        gk = gs.transpose(-2, -1) @ q
        return gq, gk, gv, None, None, None
