import torch
from torch.autograd.function import once_differentiable


class EdgeSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, score, dst, num_nodes):
        E, H = score.shape
        ind = dst[:, None].expand(E, H)
        top = score.new_full((num_nodes, H), float("-inf")).scatter_reduce_(0, ind, score, "amax")
        e = torch.exp(score - top[dst])
        total = score.new_zeros(num_nodes, H).index_add_(0, dst, e)
        out = e / total[dst]
        ctx.save_for_backward(out, dst)
        ctx.num_nodes = num_nodes
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        out, dst = ctx.saved_tensors
        sds = out * grad_out
        accum = sds.new_zeros(ctx.num_nodes, out.shape[1]).index_add_(0, dst, grad_out) / torch.bincount(dst, minlength=ctx.num_nodes).clamp(min=1)[:, None]
        return sds - out * accum[dst], None, None


def edge_softmax(score, edge_index, num_nodes, norm_by="dst"):
    """softmax of the edge scores (E, heads) over the edges with the same end node"""
    src, dst = edge_index
    return EdgeSoftmax.apply(score, dst if norm_by == "dst" else src, num_nodes)
