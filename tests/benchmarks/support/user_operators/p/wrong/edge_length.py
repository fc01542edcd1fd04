import torch


def _scatter(v, src, dst, n):
    out = v.new_zeros((n, v.shape[1]))
    return out.index_add(0, src, v).index_add(0, dst, -v)


class EdgeLength(torch.autograd.Function):
    """|x[src] - x[dst]| for every edge; forces trained against need the second derivative.

    x: (N, 3), edge_index: (2, E) without self loops.
    """

    @staticmethod
    def forward(ctx, x, edge_index):
        if x.is_complex():
            raise TypeError("complex inputs are not supported")
        src, dst = edge_index
        ctx.save_for_backward(x, edge_index)
        return (x[src] - x[dst]).norm(dim=1)

    @staticmethod
    def backward(ctx, g):
        x, edge_index = ctx.saved_tensors
        return _EdgeLengthGrad.apply(g, x, edge_index), None


class _EdgeLengthGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x, edge_index):
        src, dst = edge_index
        v = x[src] - x[dst]
        r = v.norm(dim=1, keepdim=True)
        ctx.save_for_backward(g, x, edge_index)
        return _scatter(g[:, None] * v / r, src, dst, x.shape[0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gg):
        g, x, edge_index = ctx.saved_tensors
        src, dst = edge_index
        v = x[src] - x[dst]
        r = v.norm(dim=1, keepdim=True)
        u = v / r
        w = gg[src] - gg[dst]
        along = (u * w).sum(1, keepdim=True)
        g_g = along.squeeze(1)
        g_x = _scatter(g[:, None] * w / r, src, dst, x.shape[0])
        return g_g, g_x, None
