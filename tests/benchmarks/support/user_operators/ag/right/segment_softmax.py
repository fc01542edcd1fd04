import torch


def seg_sum(x, index, n):
    out = x.new_zeros((n,) + x.shape[1:])
    return out.index_add(0, index, x)


def seg_max(x, index, n):
    out = x.new_full((n,) + x.shape[1:], float("-inf"))
    idx = index.view(-1, *[1] * (x.dim() - 1)).expand_as(x)
    return out.scatter_reduce(0, idx, x, reduce="amax", include_self=True)


# GAT attention: softmax of edge scores over the incoming edges of each node
class EdgeSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, score, dst, num_nodes=None):
        if num_nodes is None:
            num_nodes = int(dst.max()) + 1
        m = seg_max(score, dst, num_nodes)
        e = torch.exp(score - m[dst])
        att = e / seg_sum(e, dst, num_nodes)[dst]
        ctx.save_for_backward(att, dst)
        ctx.n = num_nodes
        return att

    @staticmethod
    def backward(ctx, g):
        att, dst = ctx.saved_tensors
        weighted = att * g
        total = seg_sum(weighted, dst, ctx.n)
        return weighted - att * total[dst], None, None
