import math
import torch


def _probs(q, k, sink, causal):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n, m = s.shape[-2:]
        s = s.masked_fill(torch.ones(n, m, dtype=torch.bool, device=s.device).triu(1 + m - n), float("-inf"))
    col = sink.view(1, -1, 1, 1).expand(*s.shape[:-1], 1)
    p = torch.cat([s, col], -1).softmax(-1)
    return p[..., :-1], p[..., -1]


class SinkAttention(torch.autograd.Function):
    """q k v: (B, H, T, D), sink: (H,) one learned logit per head that takes weight but has no value"""

    @staticmethod
    def forward(ctx, q, k, v, sink, causal=True):
        p, _ = _probs(q, k, sink, causal)
        ctx.causal = causal
        ctx.save_for_backward(q, k, v, sink)
        return p @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, sink = ctx.saved_tensors
        p, p_sink = _probs(q, k, sink, ctx.causal)
        dp = do @ v.transpose(-1, -2)
        delta = (p * dp).sum(-1)
        ds = p * (dp - delta[..., None]) / math.sqrt(q.shape[-1])
        dsink = -(p_sink * delta).sum((0, 2))
        return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do, dsink, None
