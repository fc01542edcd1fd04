import torch


class Chamfer(torch.autograd.Function):
    """
    Squared distances to the nearest neighbour, both ways.

    a (N, D), b (M, D) -> dist_a (N,), dist_b (M,), idx_a (N,), idx_b (M,)
    """

    @staticmethod
    def forward(ctx, a, b):
        d = (a[:, None] - b[None]).pow(2).sum(-1)
        da, ia = d.min(1)
        db, ib = d.min(0)
        ctx.save_for_backward(a, b, ia, ib)
        ctx.mark_non_differentiable(ia, ib)
        return da, db, ia, ib

    @staticmethod
    def backward(ctx, gda, gdb, _ia, _ib):
        a, b, ia, ib = ctx.saved_tensors
        va = 2 * gda[:, None] * (a - b[ia])
        vb = 2 * gdb[:, None] * (b - a[ib])
        ga = va.index_add(0, ib, -vb)
        gb = vb.index_add(0, ia, -va)
        return ga, gb
