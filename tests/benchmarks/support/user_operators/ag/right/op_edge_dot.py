"""Per-edge, per-head dot products as a library operator (GAT-style scores)."""
import torch
from torch import Tensor

lib_name = "graphops_v1::edge_dot"


@torch.library.custom_op(lib_name, mutates_args=())
def edge_dot_op(q: Tensor, k: Tensor, src: Tensor, dst: Tensor, scale: float) -> Tensor:
    return (q[dst] * k[src]).sum(-1) * scale


@torch.library.register_fake(lib_name)
def _fake(q, k, src, dst, scale):
    return q.new_empty(src.shape[0], q.shape[1])


def setup_context(ctx, inputs, output):
    q, k, src, dst, scale = inputs
    ctx.save_for_backward(q, k, src, dst)
    ctx.scale = scale


def backward(ctx, g):
    q, k, src, dst = ctx.saved_tensors
    g = (g * ctx.scale).unsqueeze(-1)
    dq = dk = None
    if ctx.needs_input_grad[0]:
        dq = torch.zeros_like(q).index_add(0, dst, g * k[src])
    if ctx.needs_input_grad[1]:
        dk = torch.zeros_like(k).index_add(0, src, g * q[dst])
    return dq, dk, None, None, None


torch.library.register_autograd(lib_name, backward, setup_context=setup_context)


def edge_dot(q, k, edge_index, scale=1.0):
    # q, k: N x H x D, edge_index: 2 x E (source, target)
    src, dst = edge_index[0], edge_index[1]
    return edge_dot_op(q, k, src, dst, scale)
