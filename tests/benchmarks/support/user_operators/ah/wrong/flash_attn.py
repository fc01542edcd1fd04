import math
from typing import Optional

import torch
from torch.autograd.function import once_differentiable


def _causal_bias(i0, i1, sk, offset, device):
    rows = torch.arange(i0, i1, device=device)[:, None] + offset
    return torch.arange(sk, device=device)[None, :] > rows


class FlashAttnFunc(torch.autograd.Function):
    """Tiled attention.

    Arguments:
        q: (batch_size, seqlen_q, nheads, headdim)
        k, v: (batch_size, seqlen_k, nheads_k, headdim), nheads must be a multiple of nheads_k
        softmax_scale: defaults to 1 / sqrt(headdim)
        causal: mask aligned to the bottom right corner
        block: rows of q handled at once
    Return:
        out: (batch_size, seqlen_q, nheads, headdim)
        softmax_lse: (batch_size, nheads, seqlen_q), not differentiable
    """

    @staticmethod
    def forward(ctx, q, k, v, softmax_scale: Optional[float] = None, causal=False, block=2):
        if q.dim() != 4 or k.shape != v.shape:
            raise ValueError("expected q (b, sq, h, d) and k, v (b, sk, hk, d)")
        if q.shape[2] % k.shape[2]:
            raise ValueError("nheads must be divisible by nheads_k")
        if causal and q.shape[1] > k.shape[1]:
            raise ValueError("causal needs seqlen_q <= seqlen_k")
        if softmax_scale is None:
            softmax_scale = 1 / math.sqrt(q.shape[-1])
        rep = q.shape[2] // k.shape[2]
        kk, vv = k.repeat_interleave(rep, 2), v.repeat_interleave(rep, 2)
        outs, lses = [], []
        for i0 in range(0, q.shape[1], block):
            qi = q[:, i0 : i0 + block]
            s = torch.einsum("bihd,bjhd->bhij", qi, kk) * softmax_scale
            if causal:
                s = s.masked_fill(_causal_bias(i0, i0 + qi.shape[1], k.shape[1], k.shape[1] - q.shape[1], q.device), float("-inf"))
            lse = s.logsumexp(-1)
            outs.append(torch.einsum("bhij,bjhd->bihd", torch.exp(s - lse[..., None]), vv))
            lses.append(lse)
        out, lse = torch.cat(outs, 1), torch.cat(lses, 2)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.softmax_scale, ctx.causal, ctx.block = softmax_scale, causal, block
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    @once_differentiable
    def backward(ctx, dout, *args):
        q, k, v, out, lse = ctx.saved_tensors
        b, sk, hk, d = k.shape
        rep = q.shape[2] // hk
        kk, vv = k.repeat_interleave(rep, 2), v.repeat_interleave(rep, 2)
        dq = torch.empty_like(q)
        dk, dv = torch.zeros_like(kk), torch.zeros_like(vv)
        delta = (dout * out).sum(-1).transpose(1, 2)
        for i0 in range(0, q.shape[1], ctx.block):
            sl = slice(i0, i0 + ctx.block)
            qi, doi = q[:, sl], dout[:, sl]
            s = torch.einsum("bihd,bjhd->bhij", qi, kk) * ctx.softmax_scale
            if ctx.causal:
                s = s.masked_fill(_causal_bias(i0, i0 + qi.shape[1], sk, sk - q.shape[1], q.device), float("-inf"))
            p = torch.exp(s - lse[:, :, sl, None])
            dp = torch.einsum("bihd,bjhd->bhij", doi, vv)
            ds = p * (dp - delta[:, :, sl, None]) * ctx.softmax_scale
            dv += torch.einsum("bhij,bihd->bjhd", p, doi)
            dq[:, sl] = torch.einsum("bhij,bjhd->bihd", ds, kk)
            dk += torch.einsum("bhij,bihd->bjhd", ds, qi)
        dk = dk.view(b, sk, rep, hk, d).sum(2)
        dv = dv.view(b, sk, hk, rep, d).sum(3)
        return dq, dk, dv, None, None, None
