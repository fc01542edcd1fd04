import torch


class JaggedToPadded(torch.autograd.Function):
    """Rows of a packed batch into a padded one.

    values: (total, D), offsets: (B + 1,), out: (B, max_len, D); longer sequences are cut.
    """

    @staticmethod
    def forward(ctx, values, offsets, max_len, pad=0.0):
        row = torch.arange(max_len, device=offsets.device) + offsets[:-1, None]
        ctx.ok = row < offsets[1:, None]
        ctx.row = row[ctx.ok]
        ctx.save_for_backward(values)
        out = values.new_full(row.shape + (values.shape[1],), pad)
        out[ctx.ok] = values[ctx.row]
        return out

    @staticmethod
    def backward(ctx, g):
        (values,) = ctx.saved_tensors
        d = values.shape[1]
        at = ctx.row[:, None] * d + torch.arange(d, device=g.device)
        gv = g.new_zeros(values.shape)
        gv.reshape(-1).index_add_(0, at.reshape(-1), g[ctx.ok].reshape(-1))
        return gv, None, None, None
