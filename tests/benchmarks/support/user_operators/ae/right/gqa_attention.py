import torch
from torch.autograd.function import once_differentiable


def repeat_kv(x, n_rep):
    """(B, Hkv, T, D) -> (B, Hkv * n_rep, T, D); every kv head serves n_rep neighbouring query heads"""
    return x.repeat_interleave(n_rep, dim=1)


def fold_kv(g, n_rep):
    b, h, t, d = g.shape
    return g.reshape(b, h // n_rep, n_rep, t, d).sum(2)


class _GQA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, window):
        n_rep = q.shape[1] // k.shape[1]
        kk, vv = repeat_kv(k, n_rep), repeat_kv(v, n_rep)
        t = q.shape[2]
        i = torch.arange(t, device=q.device)
        allowed = i[None, :] <= i[:, None]
        if window is not None:
            allowed = allowed & (i[:, None] - i[None, :] < window)
        s = q @ kk.transpose(2, 3) * q.shape[-1] ** -0.5
        p = s.masked_fill(~allowed, float("-inf")).softmax(-1)
        ctx.save_for_backward(q, k, v, p)
        return p @ vv

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensors
        n_rep = q.shape[1] // k.shape[1]
        kk, vv = repeat_kv(k, n_rep), repeat_kv(v, n_rep)
        dv = fold_kv(p.transpose(2, 3) @ do, n_rep)
        dp = do @ vv.transpose(2, 3)
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
        dk = fold_kv(ds.transpose(2, 3) @ q, n_rep)
        return ds @ kk, dk, dv, None


def gqa_attention(q, k, v, window=None):
    """Causal grouped-query attention with an optional sliding window."""
    assert q.shape[1] % k.shape[1] == 0, "query heads must be a multiple of kv heads"
    return _GQA.apply(q, k, v, window)
