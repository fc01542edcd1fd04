import torch
from torch import Tensor


class GCNPropagate(torch.autograd.Function):
    """D^-1/2 (A + fill * I) D^-1/2 x for a directed weighted graph, D the weighted in-degree (with the loop).

    x (nodes, d); weight (edges,) positive; edge_index (2, edges). The degrees are differentiated as well.
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, edge_index: Tensor, fill: float = 1.0) -> Tensor:
        ctx.save_for_backward(x, weight, edge_index)
        ctx.fill = fill
        src, dst = edge_index
        deg = torch.full_like(x[:, 0], fill).index_add(0, dst, weight)
        s = deg.rsqrt()[:, None]
        y = s * x
        return s * (fill * y).index_add(0, dst, weight[:, None] * y[src])

    @staticmethod
    def backward(ctx, g: Tensor):
        x, weight, edge_index = ctx.saved_tensors
        src, dst = edge_index
        deg = torch.full_like(x[:, 0], ctx.fill).index_add(0, dst, weight)
        s = deg.rsqrt()[:, None]
        y = s * x
        z = (ctx.fill * y).index_add(0, dst, weight[:, None] * y[src])
        gz = g * s
        gy = (ctx.fill * gz).index_add(0, src, weight[:, None] * gz[dst])
        g_weight = (gz[dst] * y[src]).sum(-1)
        g_s = (gy * x).sum(-1)
        g_deg = -0.5 * g_s * deg.pow(-1.5)
        return gy * s, g_weight + g_deg[dst], None, None
