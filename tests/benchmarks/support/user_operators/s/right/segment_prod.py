import torch


def _to_rows(x, lengths):
    longest = int(lengths.max())
    mask = torch.arange(longest, device=x.device) < lengths[:, None]
    rows = x.new_ones((lengths.numel(), longest) + x.shape[1:])
    rows[mask] = x
    return rows, mask


class SegmentProd(torch.autograd.Function):
    """Product of consecutive segments of ``x`` along dim 0.

    ``lengths`` holds the segments' sizes; an empty segment gives 1.  Zeros in ``x`` are fine, the
    gradient is formed from the products of what stands before and behind an entry.
    """

    @staticmethod
    def forward(ctx, x, lengths):
        rows, _ = _to_rows(x, lengths)
        ctx.save_for_backward(x, lengths)
        return rows.prod(1)

    @staticmethod
    def backward(ctx, grad):
        x, lengths = ctx.saved_tensors
        rows, mask = _to_rows(x, lengths)
        ones = torch.ones_like(rows[:, :1])
        before = torch.cat([ones, rows[:, :-1]], 1).cumprod(1)
        behind = torch.cat([rows[:, 1:], ones], 1).flip(1).cumprod(1).flip(1)
        others = before * behind
        return (grad[:, None] * others)[mask], None
