import torch


class _DecodeAttn(torch.autograd.Function):
    """One query per sequence against the cache, grouped heads, optional sink logit per head."""

    @staticmethod
    def _prob(q, k, sink, lengths, scale):
        b, hq, d = q.shape
        hk = k.size(2)
        qg = q.reshape(b, hk, hq // hk, d)
        s = scale * torch.einsum("bkgd,bskd->bkgs", qg, k)
        dead = torch.arange(k.size(1), device=k.device) >= lengths[:, None]
        s = s.masked_fill(dead[:, None, None], float("-inf"))
        if sink is not None:
            s = torch.cat([s, sink.reshape(1, hk, hq // hk, 1).expand(b, -1, -1, -1)], -1)
        return qg, s.softmax(-1)

    @staticmethod
    def forward(ctx, q, k, v, sink, lengths, scale):
        _, p = _DecodeAttn._prob(q, k, sink, lengths, scale)
        ctx.save_for_backward(q, k, v, sink, lengths)
        ctx.scale = scale
        out = torch.einsum("bkgs,bskd->bkgd", p[..., : k.size(1)], v)
        return out.reshape(q.shape[0], q.shape[1], v.size(-1))

    @staticmethod
    def backward(ctx, do):
        q, k, v, sink, lengths = ctx.saved_tensors
        qg, p_all = _DecodeAttn._prob(q, k, sink, lengths, ctx.scale)
        s_len = k.size(1)
        p = p_all[..., :s_len]
        do = do.reshape(qg.shape[0], qg.shape[1], qg.shape[2], v.size(-1))
        dv = torch.einsum("bkgs,bkgd->bskd", p, do)
        dp = torch.einsum("bkgd,bskd->bkgs", do, v)
        mean = (dp * p).sum(-1, keepdim=True)
        ds = p * (dp - mean)
        d_sink = None
        if sink is not None:
            d_sink = -(p_all[..., s_len:] * mean).sum(0).reshape(-1)
        ds = ds * ctx.scale
        dq = torch.einsum("bkgs,bskd->bkgd", ds, k).reshape(q.shape)
        dk = torch.einsum("bkgs,bkgd->bskd", ds, qg)
        return dq, dk, dv, d_sink, None, None


def decode_attention(q, k_cache, v_cache, lengths, sink=None, scale=None):
    """q (B, Hq, D); caches (B, S, Hkv, D); lengths (B,) >= 1; sink (Hq,)."""
    if q.size(1) % k_cache.size(2):
        raise ValueError("query heads must be a multiple of key heads")
    if scale is None:
        scale = q.size(-1) ** -0.5
    return _DecodeAttn.apply(q, k_cache, v_cache, sink, lengths, scale)
