import torch


def _stats(x, seg, n, unbiased):
    cnt = torch.zeros(n, 1, dtype=x.dtype).index_add(0, seg, torch.ones(seg.numel(), 1, dtype=x.dtype))
    mean = x.new_zeros(n, x.shape[1]).index_add(0, seg, x) / cnt.clamp(min=1)
    d = x - mean[seg]
    den = (cnt - 1 if unbiased else cnt).clamp(min=1)
    return d, den


class SegmentStd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seg, n, unbiased=False, eps=1e-6):
        d, den = _stats(x, seg, n, unbiased)
        y = (x.new_zeros(n, x.shape[1]).index_add(0, seg, d * d) / den + eps).sqrt()
        ctx.save_for_backward(x, seg, y)
        ctx.n, ctx.unbiased = n, unbiased
        return y

    @staticmethod
    def backward(ctx, g):
        x, seg, y = ctx.saved_tensors
        d, den = _stats(x, seg, ctx.n, False)
        return (g / (den * y))[seg] * d, None, None, None, None
