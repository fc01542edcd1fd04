import torch
from torch.nn.functional import elu


class LinearAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        fq, fk = elu(q) + 1, elu(k) + 1
        num = fq @ (fk.transpose(1, 2) @ v)
        den = (fq * fk.sum(1, keepdim=True)).sum(-1, keepdim=True)
        return num / den

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        fq, fk = elu(q) + 1, elu(k) + 1
        kv = fk.transpose(1, 2) @ v
        ksum = fk.sum(1, keepdim=True)
        den = (fq * ksum).sum(-1, keepdim=True)
        out = fq @ kv / den
        gn = g / den
        gd = -(gn * out).sum(-1, keepdim=True)
        gfq = gn @ kv.transpose(1, 2) + gd * ksum
        gkv = fq.transpose(1, 2) @ gn
        gfk = v @ gkv.transpose(1, 2) + (gd * fq).sum(1, keepdim=True)
        gv = fk @ gkv
        dq = torch.where(q > 0, torch.ones_like(q), q.exp())
        dk = torch.where(k > 0, torch.ones_like(k), k.exp())
        return gfq * dq, gfk * dk, gv
