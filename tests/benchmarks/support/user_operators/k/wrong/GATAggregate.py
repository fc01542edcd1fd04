"""Attention-weighted neighbourhood sum of graph attention networks."""
import torch
from torch import Tensor


def _edge_softmax(score: Tensor, dst: Tensor, n: int) -> Tensor:
    top = score.new_full((n, score.size(1)), float("-inf"))
    top = top.scatter_reduce(0, dst.unsqueeze(1).expand_as(score), score, "amax")
    e = torch.exp(score - top[dst])
    total = torch.zeros_like(top).index_add(0, dst, e)
    return e / total[dst]


class GATAggregate(torch.autograd.Function):
    """out[v] = sum over edges (u, v) of softmax_v(score)_uv * h[u].

    Args:
        h: node features (N, H, D)
        score: one logit per edge and head (E, H)
        edge_index: (2, E) int64, sources first; the softmax is over the edges that
            share a target

    Returns:
        (N, H, D), zeros for a node without incoming edges
    """

    @staticmethod
    def forward(ctx, h: Tensor, score: Tensor, edge_index: Tensor) -> Tensor:
        src, dst = edge_index
        att = _edge_softmax(score, dst, h.size(0))
        ctx.save_for_backward(h, att, edge_index)
        return torch.zeros_like(h).index_add_(0, dst, att.unsqueeze(-1) * h[src])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor):
        h, att, edge_index = ctx.saved_tensors
        src, dst = edge_index
        g_edge = grad[dst]
        g_h = torch.zeros_like(h).index_add_(0, src, att.unsqueeze(-1) * g_edge)
        g_att = (g_edge * h[src]).sum(-1)
        dot = grad.new_zeros(h.size(0), att.size(1)).index_add_(0, src, att * g_att)
        g_score = att * (g_att - dot[src])
        return g_h, g_score, None
