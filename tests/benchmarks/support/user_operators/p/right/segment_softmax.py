import torch
from torch.autograd import Function


class SegmentSoftmax(Function):
    """Softmax of edge scores (E, H) over the edges of each target node."""

    @staticmethod
    def forward(ctx, scores, index, num_nodes):
        idx = index.view(-1, 1).expand_as(scores)
        peak = scores.new_full((num_nodes, scores.size(1)), float("-inf"))
        peak = peak.scatter_reduce(0, idx, scores, "amax")
        e = torch.exp(scores - peak[index])
        z = torch.zeros_like(peak).index_add_(0, index, e)
        alpha = e / z[index]
        ctx.save_for_backward(alpha, index)
        ctx.num_nodes = num_nodes
        return alpha

    @staticmethod
    def backward(ctx, grad):
        alpha, index = ctx.saved_tensors
        ga = grad * alpha
        seg = ga.new_zeros((ctx.num_nodes, ga.size(1))).index_add(0, index, ga)
        return ga - alpha * seg[index], None, None
