import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _scores(q: Tensor, k: Tensor, scale: float, causal: bool) -> Tensor:
    s = torch.einsum("ihd,jhd->hij", q, k) * scale
    if causal:
        n = q.size(0)
        s = s.masked_fill(torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    return s


class VarlenQKVPacked(torch.autograd.Function):
    """Self attention over packed sequences. qkv (T, 3, H, D), cu_seqlens (B + 1,) int.

    Only the row logsumexp is kept; probabilities are rebuilt in backward.
    """

    @staticmethod
    def forward(ctx, qkv: Tensor, cu_seqlens: Tensor, causal: bool, scale: float | None) -> Tensor:
        t, _, h, d = qkv.shape
        ctx.scale = d ** -0.5 if scale is None else scale
        ctx.causal = causal
        out = qkv.new_empty(t, h, d)
        lse = qkv.new_empty(h, t)
        for s, e in zip(cu_seqlens.tolist(), cu_seqlens.tolist()[1:]):
            if s == e:
                continue
            q, k, v = qkv[s:e].unbind(1)
            scores = _scores(q, k, ctx.scale, causal)
            lse[:, s:e] = scores.logsumexp(-1)
            out[s:e] = torch.einsum("hij,jhd->ihd", scores.softmax(-1), v)
        ctx.save_for_backward(qkv, cu_seqlens, out, lse)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, do: Tensor):
        qkv, cu_seqlens, out, lse = ctx.saved_tensors
        dqkv = torch.zeros_like(qkv)
        delta = (do * out).sum(-1).T
        for s, e in zip(cu_seqlens.tolist(), cu_seqlens.tolist()[1:]):
            if s == e:
                continue
            q, k, v = qkv[s:e].unbind(1)
            scale = ctx.scale
            p = torch.exp(_scores(q, k, scale, ctx.causal) - lse[:, s:e, None])
            dp = torch.einsum("ihd,jhd->hij", do[s:e], v)
            ds = p * (dp - delta[:, s:e, None]) * scale
            dqkv[s:e, 0] = torch.einsum("hij,jhd->ihd", ds, k)
            dqkv[s:e, 1] = torch.einsum("hij,ihd->jhd", ds, q)
            dqkv[s:e, 2] = torch.einsum("hij,ihd->jhd", p, do[s:e])
        return dqkv, None, None, None
