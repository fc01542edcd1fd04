import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class GCNPropagate(torch.autograd.Function):
    """out_i = sum_e w_e / sqrt(d_src d_dst) x_src, d the weighted in-degree (self loops are in the edges)"""

    @staticmethod
    def forward(ctx, x, w, src, dst):
        deg = torch.zeros(x.shape[0], dtype=w.dtype, device=w.device).index_add_(0, dst, w)
        dis = torch.where(deg > 0, deg.clamp(min=1e-12).rsqrt(), torch.zeros_like(deg))
        norm = dis[src] * w * dis[dst]
        ctx.save_for_backward(x, w, src, dst, dis, norm)
        return torch.zeros_like(x).index_add_(0, dst, norm[:, None] * x[src])

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, w, src, dst, dis, norm = ctx.saved_tensors
        g_x = torch.zeros_like(x).index_add_(0, src, norm[:, None] * g[dst])
        g_norm = (g[dst] * x[src]).sum(1)
        g_w = g_norm * dis[src] * dis[dst]
        # through the degrees
        g_dis = torch.zeros_like(dis)
        g_dis.index_add_(0, dst, g_norm * w * dis[src])
        g_deg = -0.5 * dis ** 3 * g_dis
        g_w = g_w + g_deg[dst]
        return g_x, g_w, None, None


class GCNConv(nn.Module):
    def __init__(self, cin, cout, bias=True, add_self_loops=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cin, cout) / cin ** 0.5)
        self.bias = nn.Parameter(torch.zeros(cout)) if bias else None
        self.add_self_loops = add_self_loops

    def forward(self, x, edge_index, edge_weight=None):
        src, dst = edge_index
        if edge_weight is None:
            edge_weight = x.new_ones(src.numel())
        if self.add_self_loops:
            loop = torch.arange(x.shape[0], device=x.device)
            src, dst = torch.cat([src, loop]), torch.cat([dst, loop])
            edge_weight = torch.cat([edge_weight, edge_weight.new_ones(x.shape[0])])
        out = GCNPropagate.apply(x @ self.weight, edge_weight, src, dst)
        return out if self.bias is None else out + self.bias
