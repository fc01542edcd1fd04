import torch
from torch import Tensor


def _positions(values: Tensor, offsets: Tensor):
    lengths = offsets[1:] - offsets[:-1]
    row = torch.repeat_interleave(torch.arange(lengths.numel(), device=offsets.device), lengths)
    col = torch.arange(values.shape[0], device=offsets.device) - offsets[:-1][row]
    return row, col


@torch.library.custom_op("yops::jagged2padded", mutates_args=())
def jagged_op(values: Tensor, offsets: Tensor, max_len: int, fill: float = 0.0) -> Tensor:
    out = values.new_full((offsets.numel() - 1, max_len, values.shape[1]), fill)
    row, col = _positions(values, offsets)
    keep = col < max_len
    out[row[keep], col[keep]] = values[keep]
    return out


@jagged_op.register_fake
def _(values, offsets, max_len, fill=0.0):
    return values.new_empty(offsets.shape[0] - 1, max_len, values.shape[1])


def setup_context(ctx, inputs, output):
    values, offsets, ctx.max_len, _ = inputs
    ctx.save_for_backward(values, offsets)


def backward(ctx, grad):
    values, offsets = ctx.saved_tensors
    row, col = _positions(values, offsets)
    keep = col <= ctx.max_len
    got = grad[row, col.clamp(max=ctx.max_len - 1)]
    return got * keep[:, None], None, None, None


jagged_op.register_autograd(backward, setup_context=setup_context)


def jagged_to_padded(values, offsets, max_len=None, fill=0.0):
    """(total, D) and offsets (B + 1,) -> (B, max_len, D); longer rows are cut."""
    if max_len is None:
        max_len = int((offsets[1:] - offsets[:-1]).max())
    return torch.ops.yops.jagged2padded(values, offsets, max_len, fill)
