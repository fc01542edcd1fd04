import torch


class PagedGather(torch.autograd.Function):
    """Collects each sequence from a paged cache.

    Args:
        pool: (num_blocks, block_size, H, D).
        table: (B, max_blocks) block ids; sequences may share blocks (common prefixes).
        lengths: (B,) valid tokens.
    Returns:
        (B, max_blocks * block_size, H, D), zero after the length.
    """

    @staticmethod
    def forward(ctx, pool, table, lengths):
        out = pool[table].flatten(1, 2)
        valid = torch.arange(out.size(1), device=out.device) < lengths[:, None]
        ctx.save_for_backward(table, valid)
        ctx.pool_shape = pool.shape
        return out * valid[..., None, None]

    @staticmethod
    def backward(ctx, grad):
        table, valid = ctx.saved_tensors
        block = ctx.pool_shape[1]
        grad = (grad * valid[..., None, None]).unflatten(1, (table.size(1), block))
        d_pool = grad.new_zeros(ctx.pool_shape).index_put((table,), grad, accumulate=True)
        return d_pool, None, None
