import torch


def _owner(offsets, total):
    pos = torch.arange(total, device=offsets.device)
    return torch.searchsorted(offsets[1:].contiguous(), pos, right=True)


def _softmax(logits, seg, n):
    top = logits.new_full((n,), float("-inf")).scatter_reduce(0, seg, logits.detach(), "amax")
    e = (logits - top[seg]).exp()
    return e / logits.new_zeros(n).index_add(0, seg, e)[seg]


@torch.library.custom_op("raggedops::attn_pool", mutates_args=())
def attn_pool(values: torch.Tensor, logits: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Attention pooling of a packed batch.

    values (L, D), logits (L,), offsets (B + 1,) with offsets[0] == 0 and offsets[-1] == L.
    Empty sequences give zeros.  -> (B, D)
    """
    n = offsets.numel() - 1
    seg = _owner(offsets, logits.numel())
    p = _softmax(logits, seg, n)
    return values.new_zeros(n, values.shape[1]).index_add(0, seg, p[:, None] * values)


@attn_pool.register_fake
def _(values, logits, offsets):
    return values.new_empty(offsets.numel() - 1, values.shape[1])


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs, output)


def _grad(ctx, g):
    values, logits, offsets, out = ctx.saved_tensors
    seg = torch.searchsorted(offsets[1:].contiguous(), torch.arange(logits.numel()))
    p = _softmax(logits, seg, offsets.numel() - 1)
    gl = g[seg]
    g_values = p[:, None] * gl
    g_logits = p * (gl * (values - out[seg])).sum(1)
    return g_values, g_logits, None


attn_pool.register_autograd(_grad, setup_context=_save)
