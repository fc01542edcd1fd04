import torch
from torch import Tensor


@torch.library.custom_op("jaggedlib_v2::to_padded", mutates_args=())
def to_padded(values: Tensor, offsets: Tensor, max_len: int, pad: float) -> Tensor:
    b = offsets.numel() - 1
    out = torch.full((b, max_len, values.size(1)), pad, dtype=values.dtype, device=values.device)
    row, col, keep = _slots(values.size(0), offsets, max_len)
    out[row[keep], col[keep]] = values[keep]
    return out


def _slots(n, offsets, max_len):
    pos = torch.arange(n, device=offsets.device)
    row = torch.bucketize(pos, offsets[1:], right=True)
    col = pos - offsets[row]
    return row, col, col < max_len


@to_padded.register_fake
def _(values, offsets, max_len, pad):
    return values.new_empty(offsets.numel() - 1, max_len, values.size(1))


def setup_context(ctx, inputs, output):
    values, offsets, max_len, _ = inputs
    ctx.save_for_backward(offsets)
    ctx.n = values.size(0)
    ctx.max_len = max_len


def backward(ctx, grad):
    (offsets,) = ctx.saved_tensors
    row, col, keep = _slots(ctx.n, offsets, ctx.max_len)
    g = grad[row, col.clamp(max=ctx.max_len - 1)]
    return g, None, None, None


to_padded.register_autograd(backward, setup_context=setup_context)


def jagged_to_padded(values, offsets, max_len=None, pad=0.0):
    """values (N, D) with offsets (B + 1,) -> (B, max_len, D); longer rows are cut."""
    if max_len is None:
        max_len = int(offsets.diff().max())
    return to_padded(values, offsets, max_len, pad)
