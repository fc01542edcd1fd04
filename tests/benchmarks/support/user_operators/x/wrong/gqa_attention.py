import math

import torch
from torch.autograd.function import once_differentiable


class GroupedQueryAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, key_mask=None):
        # q: B Hq T D   k, v: B Hkv S D   key_mask: B S, True = keep
        rep = q.size(1) // k.size(1)
        kk, vv = k.repeat_interleave(rep, 1), v.repeat_interleave(rep, 1)
        s = torch.einsum("bhtd,bhsd->bhts", q, kk) / math.sqrt(q.size(-1))
        if key_mask is not None:
            s = s.masked_fill(~key_mask[:, None, None, :], -1e9)
        p = torch.softmax(s, -1)
        ctx.save_for_backward(q, kk, vv, p)
        ctx.rep = rep
        return p @ vv

    @staticmethod
    def _fold(t, rep):
        b, h, s, d = t.shape
        return t.reshape(b, h // rep, rep, s, d).mean(2)

    @staticmethod
    @once_differentiable
    def backward(ctx, go):
        q, kk, vv, p = ctx.saved_tensors
        gv = torch.einsum("bhts,bhtd->bhsd", p, go)
        gp = torch.einsum("bhtd,bhsd->bhts", go, vv)
        gs = p * (gp - (p * gp).sum(-1, keepdim=True)) / math.sqrt(q.size(-1))
        gq = gs @ kk
        gk = gs.transpose(2, 3) @ q
        fold = GroupedQueryAttention._fold
        return gq, fold(gk, ctx.rep), fold(gv, ctx.rep), None
