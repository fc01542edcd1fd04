import torch


class ReduceScatter(torch.autograd.Function):
    """Single-host emulation of reduce-scatter over a list of per-rank tensors.

    apply(op, dim, x_0, ..., x_{R-1}) -> (y_0, ..., y_{R-1}); op is "sum" or "mean".
    """

    @staticmethod
    def forward(ctx, op, dim, *xs):
        world = len(xs)
        total = torch.stack(xs).sum(0)
        if op == "mean":
            total = total / world
        ctx.op, ctx.dim, ctx.world = op, dim, world
        return tuple(c.clone() for c in total.chunk(world, dim=dim))

    @staticmethod
    def backward(ctx, *grads):
        # the adjoint is an all-gather
        full = torch.cat(grads, dim=ctx.dim)
        return (None, None) + (full,) * ctx.world
