import torch


def _where_from(offsets, max_len, total):
    idx = offsets[:-1, None] + torch.arange(max_len, device=offsets.device)
    mask = idx < offsets[1:, None]
    return idx.clamp(max=total - 1), mask


class JaggedToPadded(torch.autograd.Function):
    """values (N, ...) with offsets (B + 1) -> (B, max_len, ...); longer rows are cut off."""

    @staticmethod
    def forward(ctx, values, offsets, max_len, padding_value=0.0):
        idx, mask = _where_from(offsets, max_len, len(values))
        ctx.save_for_backward(offsets)
        ctx.max_len, ctx.shape = max_len, values.shape
        out = values.new_full(idx.shape + values.shape[1:], padding_value)
        out[mask] = values[idx[mask]]
        return out

    @staticmethod
    def backward(ctx, grad):
        (offsets,) = ctx.saved_tensors
        idx, mask = _where_from(offsets, ctx.max_len, ctx.shape[0])
        gv = grad.new_zeros(ctx.shape).index_add(0, idx[mask], grad[mask])
        return gv, None, None, None
