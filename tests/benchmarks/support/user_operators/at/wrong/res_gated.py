import torch
from torch.autograd import Function


class _ResGatedPropagate(Function):

    @staticmethod
    def forward(ctx, k, q, v, edge_index, edge_attr):
        src, dst = edge_index
        gate = k[dst] + q[src]
        if edge_attr is not None:
            gate = gate + edge_attr
        ctx.has_edge_attr = edge_attr is not None
        ctx.save_for_backward(k, q, v, edge_index, edge_attr)
        return torch.zeros_like(v).index_add(0, dst, gate.sigmoid() * v[src])

    @staticmethod
    def backward(ctx, grad_out):
        k, q, v, edge_index, edge_attr = ctx.saved_tensors
        src, dst = edge_index
        z = k[dst] + q[src]
        if ctx.has_edge_attr:
            z = z + edge_attr
        z = z.sigmoid()
        g = grad_out[dst]
        dz = g * v[src] * z * (1 - z)
        dk = torch.zeros_like(k).index_add(0, dst, dz)
        dq = torch.zeros_like(q).index_add(0, src, dz)
        dv = torch.zeros_like(v).index_add(0, src, g * z)
        return dk, dq, dv, None, None


def res_gated_propagate(k, q, v, edge_index, edge_attr=None):
    """Messages sigmoid(k_i + q_j [+ e_ij]) * v_j added up at i. All (N, C); edge_index (2, E), j -> i."""
    return _ResGatedPropagate.apply(k, q, v, edge_index, edge_attr)
