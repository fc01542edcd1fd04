import torch


def _segments(cu, total, skip_first):
    lengths = cu[1:] - cu[:-1]
    seg = torch.repeat_interleave(torch.arange(len(lengths), device=cu.device), lengths)
    use = torch.ones(total, dtype=torch.bool, device=cu.device)
    if skip_first:
        use[cu[:-1][lengths > 1]] = False
    return seg, use


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cu, mode, skip_first):
        ctx.save_for_backward(cu)
        ctx.total, ctx.mode, ctx.skip_first = x.shape[0], mode, skip_first
        if mode == "last":
            return x[cu[1:] - 1]
        seg, use = _segments(cu, x.shape[0], skip_first)
        out = x.new_zeros((len(cu) - 1, x.shape[1])).index_add(0, seg[use], x[use])
        if mode == "mean":
            out = out / torch.bincount(seg[use], minlength=len(cu) - 1).to(x.dtype)[:, None]
        return out

    @staticmethod
    def backward(ctx, g):
        cu, = ctx.saved_tensors
        if ctx.mode == "last":
            out = g.new_zeros((ctx.total, g.shape[1]))
            return out.index_copy(0, cu[1:] - 1, g), None, None, None
        seg, use = _segments(cu, ctx.total, ctx.skip_first)
        if ctx.mode == "mean":
            g = g / torch.bincount(seg, minlength=len(cu) - 1).to(g.dtype)[:, None]
        return g[seg] * use[:, None], None, None, None


def pool_packed(hidden, cu_seqlens, mode="mean", skip_first=False):
    """Pools packed sequences (total_tokens, dim) with bounds cu_seqlens (batch + 1,) to (batch, dim).

    skip_first leaves out the first token of each sequence that has more than one. No sequence is empty.
    """
    assert mode in ("mean", "sum", "last")
    assert int(cu_seqlens[-1]) == hidden.shape[0]
    return _Pool.apply(hidden, cu_seqlens, mode, skip_first)
