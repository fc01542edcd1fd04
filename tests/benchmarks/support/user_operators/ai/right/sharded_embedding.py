from typing import Sequence
import torch


class _ShardedLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, starts, *tables):
        out = tables[0].new_zeros(*ids.shape, tables[0].size(1))
        for start, table in zip(starts, tables):
            local = ids - start
            mine = (local >= 0) & (local < table.size(0))
            out = out + table[local.clamp(0, table.size(0) - 1)] * mine.unsqueeze(-1)
        ctx.save_for_backward(ids)
        ctx.starts = starts
        ctx.shapes = [t.shape for t in tables]
        return out

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        flat = ids.reshape(-1)
        grad = grad.reshape(flat.numel(), -1)
        grads = []
        for i, (start, shape) in enumerate(zip(ctx.starts, ctx.shapes)):
            if not ctx.needs_input_grad[2 + i]:
                grads.append(None)
                continue
            local = flat - start
            mine = (local >= 0) & (local < shape[0])
            g = grad * mine.unsqueeze(-1)
            grads.append(grad.new_zeros(shape).index_add(0, local.clamp(0, shape[0] - 1), g))
        return (None, None, *grads)


def sharded_embedding(ids: torch.Tensor, tables: Sequence[torch.Tensor]) -> torch.Tensor:
    """Lookup in a table whose rows are split over `tables` in order; ids of any shape."""
    starts, total = [], 0
    for t in tables:
        starts.append(total)
        total += t.size(0)
    return _ShardedLookup.apply(ids, tuple(starts), *tables)
