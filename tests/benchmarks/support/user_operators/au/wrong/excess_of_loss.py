import torch


class ExcessOfLoss(torch.autograd.Function):
    """Recoveries per year from an excess-of-loss treaty.

    losses (N,) >= 0, year (N,) long in [0, n_years), retention and limit scalars,
    aggregate: annual aggregate limit (float) or None.
    """

    @staticmethod
    def forward(ctx, losses, year, n_years, retention, limit, aggregate):
        ctx.save_for_backward(losses, year, retention, limit)
        ctx.n_years, ctx.aggregate = n_years, aggregate
        layer = torch.minimum((losses - retention).clamp(min=0), limit)
        total = losses.new_zeros(n_years).index_add(0, year, layer)
        return total if aggregate is None else total.clamp(max=aggregate)

    @staticmethod
    def backward(ctx, g):
        losses, year, retention, limit = ctx.saved_tensors
        over = losses - retention
        inside = (over > 0) & (over < limit)
        above = over >= limit
        if ctx.aggregate is not None:
            layer = torch.minimum(over.clamp(min=0), limit)
            total = losses.new_zeros(ctx.n_years).index_add(0, year, layer)
            inside = inside & (total < ctx.aggregate)[year]
        per = g[year]
        d_loss = per * inside
        return d_loss, None, None, -d_loss.sum(), (per * above).sum(), None
