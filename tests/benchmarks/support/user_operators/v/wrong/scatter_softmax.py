import torch


def _seg_sum(v, index, n):
    return v.new_zeros((n,) + v.shape[1:]).index_add(0, index, v)


class ScatterSoftmax(torch.autograd.Function):
    """Softmax of edge scores over the edges that share a target node.

    score (E, H), index (E,) int64 in [0, num_nodes).
    """

    @staticmethod
    def forward(ctx, score, index, num_nodes):
        big = score.new_full((num_nodes, score.shape[1]), float("-inf"))
        big = big.index_reduce(0, index, score, "amax")
        e = (score - big[index]).exp()
        out = e / _seg_sum(e, index, num_nodes)[index]
        ctx.save_for_backward(out, index)
        ctx.num_nodes = num_nodes
        return out

    @staticmethod
    def backward(ctx, grad):
        out, index = ctx.saved_tensors
        go = grad * out
        return go - out * go.sum(0), None, None
