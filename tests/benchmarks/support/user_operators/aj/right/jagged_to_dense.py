import torch


def _slots(offsets, L):
    lens = offsets.diff()
    pos = torch.arange(L, device=offsets.device)
    mask = pos < lens[:, None]
    return offsets[:-1, None] + pos, mask


@torch.library.custom_op("ajlib::jagged_to_dense", mutates_args=())
def jagged_to_dense(values: torch.Tensor, offsets: torch.Tensor, max_len: int, pad: float = 0.0) -> torch.Tensor:
    """values (N, D), offsets (B + 1,) -> (B, max_len, D); longer rows are cut, shorter ones padded"""
    src, mask = _slots(offsets, max_len)
    out = values.new_full((len(offsets) - 1, max_len, values.shape[1]), pad)
    out[mask] = values[src[mask]]
    return out


@jagged_to_dense.register_fake
def _(values, offsets, max_len, pad=0.0):
    return values.new_empty(offsets.shape[0] - 1, max_len, values.shape[1])


def _setup(ctx, inputs, output):
    values, offsets, ctx.max_len, _ = inputs
    ctx.n = values.shape[0]
    ctx.save_for_backward(offsets)


def _backward(ctx, g):
    offsets, = ctx.saved_tensors
    at = torch.arange(ctx.n, device=g.device)
    row = torch.bucketize(at, offsets, right=True) - 1
    row = row.clamp(0, g.shape[0] - 1)
    col = at - offsets[row]
    real = (col >= 0) & (col < ctx.max_len) & (at < offsets[row + 1])
    gv = g[row, col.clamp(0, ctx.max_len - 1)] * real[:, None]
    return gv, None, None, None


jagged_to_dense.register_autograd(_backward, setup_context=_setup)
