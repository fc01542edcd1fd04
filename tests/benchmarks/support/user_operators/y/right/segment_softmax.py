import torch


class SegmentSoftmax(torch.autograd.Function):
    """softmax over the edges that share a destination; src (E, H), index (E,)"""

    @staticmethod
    def forward(ctx, src, index, num_nodes):
        idx = index[:, None].expand_as(src)
        top = src.new_full((num_nodes, src.shape[1]), float("-inf")).scatter_reduce(0, idx, src, "amax")
        e = torch.exp(src - top[index])
        z = src.new_zeros(num_nodes, src.shape[1]).index_add(0, index, e)
        out = e / z[index]
        ctx.num_nodes = num_nodes
        ctx.save_for_backward(index, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        index, out = ctx.saved_tensors
        w = grad * out
        total = w.new_zeros(ctx.num_nodes, w.shape[1]).index_add(0, index, w)
        return w - out * total[index], None, None
