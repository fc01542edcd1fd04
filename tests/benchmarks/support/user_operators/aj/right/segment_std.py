import torch


def _moments(x, index, n):
    cnt = torch.zeros(n, dtype=x.dtype, device=x.device).index_add(0, index, torch.ones_like(x[:, 0]))
    cnt = cnt.clamp(min=1)[:, None]
    mean = x.new_zeros(n, x.shape[1]).index_add(0, index, x) / cnt
    dev = x - mean[index]
    var = x.new_zeros(n, x.shape[1]).index_add(0, index, dev * dev) / cnt
    return cnt, dev, var


class SegmentStd(torch.autograd.Function):
    # std aggregator of PNA; x (E, C), index (E,), n nodes
    @staticmethod
    def forward(ctx, x, index, n, eps=1e-5):
        ctx.save_for_backward(x, index)
        ctx.n, ctx.eps = n, eps
        return (_moments(x, index, n)[2] + eps).sqrt()

    @staticmethod
    def backward(ctx, g):
        x, index = ctx.saved_tensors
        cnt, dev, var = _moments(x, index, ctx.n)
        g = g / ((var + ctx.eps).sqrt() * cnt)
        return g[index] * dev, None, None, None
