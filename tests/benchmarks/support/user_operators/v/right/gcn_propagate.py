import torch


def _degree(w, dst, n):
    return w.new_ones(n).index_add(0, dst, w)


class GCNPropagate(torch.autograd.Function):
    """D^-1/2 (A + I) D^-1/2 x with differentiable edge weights.

    x (N, F); edge_index (2, E), rows source and target; weight (E,) >= 0. The degree counts
    incoming weight and the self loop.
    """

    @staticmethod
    def forward(ctx, x, edge_index, weight):
        src, dst = edge_index
        deg = _degree(weight, dst, x.shape[0])
        dis = deg.rsqrt()
        norm = dis[src] * weight * dis[dst]
        ctx.save_for_backward(x, edge_index, weight)
        return (x / deg[:, None]).index_add(0, dst, norm[:, None] * x[src])

    @staticmethod
    def backward(ctx, g):
        x, edge_index, weight = ctx.saved_tensors
        src, dst = edge_index
        deg = _degree(weight, dst, x.shape[0])
        dis = deg.rsqrt()
        norm = dis[src] * weight * dis[dst]
        gx = (g / deg[:, None]).index_add(0, src, norm[:, None] * g[dst])
        gnorm = (g[dst] * x[src]).sum(1)
        gdis = torch.zeros_like(dis).index_add(0, src, gnorm * weight * dis[dst])
        gdis = gdis.index_add(0, dst, gnorm * weight * dis[src])
        gdeg = -0.5 * gdis * dis ** 3 - (g * x).sum(1) / deg ** 2
        return gx, None, gnorm * dis[src] * dis[dst] + gdeg[dst]
