import torch


class CausalLinearAttention(torch.autograd.Function):
    """out[t] = sum_{s <= t} (q[t] . k[s]) v[s]; strict: s < t. q, k: (B, T, D), v: (B, T, E)"""

    @staticmethod
    def forward(ctx, q, k, v, strict=False):
        ctx.save_for_backward(q, k, v)
        ctx.strict = strict
        kv = k[..., :, None] * v[..., None, :]
        state = kv.cumsum(1)
        if strict:
            state = state - kv
        return torch.einsum("btd,btde->bte", q, state)

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        kv = k[..., :, None] * v[..., None, :]
        state = kv.cumsum(1)
        qg = q[..., :, None] * g[..., None, :]
        back = qg.flip(1).cumsum(1).flip(1)
        if ctx.strict:
            state, back = state - kv, back - qg
        gq = torch.einsum("bte,btde->btd", g, state)
        gk = torch.einsum("bte,btde->btd", v, back)
        gv = torch.einsum("btd,btde->bte", k, back)
        return gq, gk, gv, None
