import torch


class WeightedBag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, index, offsets, weight=None, padding_idx=-1):
        bag = (torch.arange(index.numel(), device=index.device)[:, None] >= offsets).sum(1) - 1
        keep = (index != padding_idx).to(table.dtype)
        w = keep if weight is None else keep * weight
        ctx.save_for_backward(table, index, weight)
        ctx.bag, ctx.keep = bag, keep
        out = table.new_zeros(offsets.numel(), table.shape[1])
        return out.index_add_(0, bag, table[index] * w[:, None])

    @staticmethod
    def backward(ctx, g):
        table, index, weight = ctx.saved_tensors
        rows = g[ctx.bag] * ctx.keep[:, None]
        g_weight = None
        if weight is not None:
            if ctx.needs_input_grad[3]:
                g_weight = (rows * table[index]).sum(-1)
            rows = rows * weight[:, None]
        g_table = torch.zeros_like(table)
        g_table.index_add_(0, index, rows)
        return g_table, None, None, g_weight, None
