import torch
from torch.autograd.function import once_differentiable


class GATAggregate(torch.autograd.Function):
    """out[i] = sum over edges (j -> i) of softmax_i(score) * x[j], per head.

    x: (N, H, D); score: (E, H); edge_index: (2, E) with sources in row 0, targets in row 1.
    Nodes without incoming edges get zeros.
    """

    @staticmethod
    def forward(ctx, x, score, edge_index):
        src, dst = edge_index[0], edge_index[1]
        N, H, _ = x.shape
        index = dst.unsqueeze(1).expand(-1, H)
        top = score.new_full((N, H), float("-inf")).scatter_reduce(0, index, score, "amax")
        e = (score - top[dst]).exp()
        alpha = e / e.new_zeros(N, H).index_add_(0, dst, e)[dst]
        out = torch.zeros_like(x).index_add_(0, dst, x[src] * alpha.unsqueeze(-1))
        ctx.save_for_backward(x, alpha, edge_index)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        x, alpha, edge_index = ctx.saved_tensors
        src, dst = edge_index[0], edge_index[1]
        g = grad_out[dst]
        gx = torch.zeros_like(x).index_add_(0, src, g * alpha.unsqueeze(-1))
        ga = (g * x[src]).sum(-1) * alpha
        total = ga.new_zeros(x.shape[:2]).index_add_(0, src, ga)
        gscore = ga - alpha * total[src]
        return gx, gscore, None
