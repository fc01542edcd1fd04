import torch


class SegmentMoments(torch.autograd.Function):
    """Per-segment mean and (biased) variance of the rows of x.

    x: (N, D); index: (N,) int64 in [0, num_segments) -> mean, var of shape (num_segments, D).
    Empty segments give zeros.
    """

    @staticmethod
    def _stats(x, index, size):
        n = x.new_zeros(size).index_add(0, index, x.new_ones(index.numel())).clamp(min=1).unsqueeze(-1)
        mean = x.new_zeros(size, x.size(1)).index_add(0, index, x) / n
        return n, mean

    @staticmethod
    def forward(ctx, x, index, num_segments):
        if x.is_complex():
            raise TypeError("x must be real")
        ctx.save_for_backward(x, index)
        ctx.size = num_segments
        n, mean = SegmentMoments._stats(x, index, num_segments)
        var = torch.zeros_like(mean).index_add(0, index, (x - mean[index]).pow(2)) / n
        return mean, var

    @staticmethod
    def backward(ctx, g_mean, g_var):
        x, index = ctx.saved_tensors
        n, mean = SegmentMoments._stats(x, index, ctx.size)
        g_x = g_mean[index] / n[index] + 2 * (x - mean[index]) * g_var[index] / n[index]
        return g_x, None, None
