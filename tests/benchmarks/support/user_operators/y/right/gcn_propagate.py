import torch
from torch.autograd.function import once_differentiable


def _degree(index, w, n):
    return 1 + torch.zeros(n, dtype=w.dtype, device=w.device).index_add(0, index, w)


class GCNPropagate(torch.autograd.Function):
    r"""out = D^{-1/2} (A + I) D^{-1/2} x for a weighted edge list

    Args:
        x (Tensor): node features, (N, F)
        edge_index (LongTensor): (2, E), row 0 sends to row 1
        edge_weight (Tensor): positive, (E,); the degrees are made of it too
    """

    @staticmethod
    def forward(ctx, x, edge_index, edge_weight):
        src, dst = edge_index
        dis = _degree(dst, edge_weight, len(x)).rsqrt()
        norm = dis[src] * edge_weight * dis[dst]
        out = x * (dis * dis)[:, None]
        out.index_add_(0, dst, x[src] * norm[:, None])
        ctx.save_for_backward(x, edge_index, edge_weight, dis)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, (src, dst), w, dis = ctx.saved_tensors
        norm = dis[src] * w * dis[dst]
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = g * (dis * dis)[:, None]
            gx.index_add_(0, src, g[dst] * norm[:, None])
        if ctx.needs_input_grad[2]:
            gnorm = (g[dst] * x[src]).sum(-1)
            gw = gnorm * dis[src] * dis[dst]
            gdis = 2 * dis * (g * x).sum(-1)
            gdis.index_add_(0, src, gnorm * w * dis[dst])
            gdis.index_add_(0, dst, gnorm * w * dis[src])
            gw = gw + (-0.5 * gdis * dis**3)[dst]
        return gx, None, gw
