import torch


class QuickCumsum(torch.autograd.Function):
    """Sum of the features that fall into one cell, by a cumulative sum (Lift-Splat).

    feats (N, C), ranks (N,) sorted cell numbers.  Returns the sums, one row for each occupied cell,
    and the cells' numbers.
    """

    @staticmethod
    def forward(ctx, feats, ranks):
        total = feats.cumsum(0)
        last = torch.ones_like(ranks, dtype=torch.bool)
        last[:-1] = ranks[1:] != ranks[:-1]
        total, cells = total[last], ranks[last]
        ctx.save_for_backward(last)
        ctx.mark_non_differentiable(cells)
        return torch.cat((total[:1], total[1:] - total[:-1])), cells

    @staticmethod
    def backward(ctx, g, _):
        (last,) = ctx.saved_tensors
        row = last.cumsum(0) - last.long()
        return g[row], None
