import torch


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, tokens, per_token, pad, mean):
        live = torch.ones_like(tokens, dtype=table.dtype) if pad is None else (tokens != pad).to(table.dtype)
        w = live if per_token is None else live * per_token
        out = torch.einsum("bl,bld->bd", w, table[tokens])
        count = live.sum(1, keepdim=True).clamp(min=1)
        ctx.save_for_backward(table, tokens, per_token, live, count)
        ctx.mean = mean
        return out / count if mean else out

    @staticmethod
    def backward(ctx, g):
        table, tokens, per_token, live, count = ctx.saved_tensors
        if ctx.mean:
            g = g / count
        w = live if per_token is None else live * per_token
        rows = w.unsqueeze(-1) * g.unsqueeze(1)
        g_table = torch.zeros_like(table).index_put((tokens,), rows)
        g_w = None
        if per_token is not None:
            g_w = live * torch.einsum("bd,bld->bl", g, table[tokens])
        return g_table, None, g_w, None, None


def weighted_embedding_bag(table, tokens, per_token=None, padding_idx=None, mode="sum"):
    """table (V, d), tokens (B, L) long, per_token (B, L) or None -> (B, d).

    Padding tokens add nothing; with mode="mean" the sum is divided by the number of other tokens.
    """
    if mode not in {"sum", "mean"}:
        raise ValueError(mode)
    return _Bag.apply(table, tokens, per_token, padding_idx, mode == "mean")
