import torch
from torch.autograd.function import once_differentiable


class GCNPropagate(torch.autograd.Function):
    """Symmetrically normalised propagation D^-1/2 (A + I) D^-1/2 x over weighted edges.

    Args:
        x: (N, F) node features
        edge_index: (2, E) int64, rows are source and target
        edge_weight: (E,) positive weights, or None for ones
        self_loops: add the identity before normalising
    """

    @staticmethod
    def forward(ctx, x, edge_index, edge_weight=None, self_loops=True):
        N = x.size(0)
        src, dst = edge_index.unbind(0)
        w = x.new_ones(src.numel()) if edge_weight is None else edge_weight
        if self_loops:
            loop = torch.arange(N, device=x.device)
            src, dst = torch.cat([src, loop]), torch.cat([dst, loop])
            w = torch.cat([w, w.new_ones(N)])
        deg = w.new_zeros(N).index_add_(0, dst, w)
        isd = torch.where(deg > 0, deg.clamp(min=1e-30).rsqrt(), torch.zeros_like(deg))
        norm = isd[src] * w * isd[dst]
        out = torch.zeros_like(x).index_add_(0, dst, x[src] * norm.unsqueeze(1))
        ctx.save_for_backward(x, src, dst, w, isd)
        ctx.n_edges = edge_index.size(1)
        ctx.weighted = edge_weight is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        x, src, dst, w, isd = ctx.saved_tensors
        norm = isd[src] * w * isd[dst]
        grad_x = torch.zeros_like(x).index_add_(0, src, grad_out[dst] * norm.unsqueeze(1))
        grad_w = None
        if ctx.weighted and ctx.needs_input_grad[2]:
            gn = (grad_out[dst] * x[src]).sum(1)
            grad_w = gn * isd[src] * isd[dst]
            grad_w = grad_w[:ctx.n_edges]
        return grad_x, None, grad_w, None
