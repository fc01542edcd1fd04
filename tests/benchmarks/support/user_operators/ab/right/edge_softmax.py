import torch


def _seg_sum(v, idx, n):
    return torch.zeros((n,) + tuple(v.shape[1:]), dtype=v.dtype, device=v.device).index_add(0, idx, v)


class EdgeSoftmax(torch.autograd.Function):
    """Softmax of edge scores (edges, heads) over the edges that enter a node; edge_index = [source, destination]."""

    @staticmethod
    def forward(ctx, score, edge_index, num_nodes):
        dst = edge_index[1]
        peak = torch.full((num_nodes, score.shape[1]), float("-inf"), dtype=score.dtype, device=score.device)
        peak.scatter_reduce_(0, dst[:, None].expand_as(score), score, "amax")
        e = (score - peak[dst]).exp()
        att = e / _seg_sum(e, dst, num_nodes)[dst]
        ctx.save_for_backward(att, edge_index)
        ctx.num_nodes = num_nodes
        return att

    @staticmethod
    def backward(ctx, grad):
        att, edge_index = ctx.saved_tensors
        src, dst = edge_index
        weighted = att * grad
        total = _seg_sum(weighted, dst, ctx.num_nodes)
        return weighted - att * total[dst], None, None
