import math

import torch


def _probs(q, k, sink):
    T = q.shape[-2]
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    mask = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    scores = scores.masked_fill(mask, -torch.inf)
    extra = sink[:, None, None].expand(-1, T, 1)
    p = torch.cat([scores, extra], -1).softmax(-1)
    return p[..., :-1], p[..., -1:]


class SinkAttention(torch.autograd.Function):
    """
    Causal attention with one learned sink logit for each head, which takes probability only.

    q, k, v: (heads, T, d); sink: (heads,).
    """

    @staticmethod
    def forward(ctx, q, k, v, sink):
        p, _ = _probs(q, k, sink)
        ctx.save_for_backward(q, k, v, sink)
        return p @ v

    @staticmethod
    def backward(ctx, dout):
        q, k, v, sink = ctx.saved_tensors
        p, psink = _probs(q, k, sink)
        dp = dout @ v.mT
        delta = (p * dp).sum(-1, keepdim=True)
        ds = p * (dp - delta) / math.sqrt(q.shape[-1])
        dsink = (psink * delta).sum((-2, -1))
        return ds @ k, ds.mT @ q, p.mT @ dout, dsink
