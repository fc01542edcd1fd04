import torch


def _segment_sum(src, index, size):
    return src.new_zeros(size, *src.shape[1:]).index_add(0, index, src)


class SegmentSoftmax(torch.autograd.Function):
    """Softmax over the edges that share a target node. src: (E, ...), index: (E,)"""

    @staticmethod
    def forward(ctx, src, index, num_segments=None):
        n = int(index.max()) + 1 if num_segments is None else num_segments
        idx = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
        top = src.new_zeros(n, *src.shape[1:]).scatter_reduce(0, idx, src, "amax", include_self=False)
        e = (src - top[index]).exp()
        out = e / _segment_sum(e, index, n)[index]
        ctx.save_for_backward(out, index)
        ctx.n = n
        return out

    @staticmethod
    def backward(ctx, grad):
        out, index = ctx.saved_tensors
        gy = grad * out
        return gy - out * _segment_sum(gy, index, ctx.n)[index], None, None
