import torch
from torch.autograd.function import once_differentiable


class _MessageMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, src, dst, num_nodes):
        msg = x[src] * w[:, None]
        out = x.new_zeros(num_nodes, x.shape[1])
        arg = torch.full(out.shape, -1, dtype=torch.long, device=x.device)
        for v in range(num_nodes):
            (edges,) = torch.where(dst == v)
            if edges.numel():
                out[v], at = msg[edges].max(0)
                arg[v] = edges[at]
        ctx.save_for_backward(x, w, src, arg)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, w, src, arg = ctx.saved_tensors
        edge = arg.clamp(min=0)
        g = grad
        node = src[edge]                                # (n, F)
        g_x = torch.zeros_like(x).scatter_add_(0, node, g * w[edge])
        g_e = g * x.gather(0, node)
        g_w = torch.zeros_like(w).index_add_(0, edge.reshape(-1), g_e.reshape(-1))
        return g_x, g_w, None, None, None


def message_max(x, edge_index, edge_weight, num_nodes=None):
    """Max aggregation of weighted messages; a node without edges gets zeros.
    x (N, F), edge_index (2, E), edge_weight (E,)"""
    src, dst = edge_index
    return _MessageMax.apply(x, edge_weight, src, dst, x.shape[0] if num_nodes is None else num_nodes)
