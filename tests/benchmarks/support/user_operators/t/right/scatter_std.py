import torch


class ScatterStd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, src, index, dim_size, unbiased=True, eps=1e-6):
        out, *_ = ScatterStd.stats(src, index, dim_size, unbiased, eps)
        ctx.save_for_backward(src, index)
        ctx.args = dim_size, unbiased, eps
        return out

    @staticmethod
    def stats(src, index, dim_size, unbiased, eps):
        n = src.new_zeros(dim_size).index_add(0, index, torch.ones_like(src))
        mean = src.new_zeros(dim_size).index_add(0, index, src) / n.clamp(min=1)
        dev = src - mean[index]
        div = (n - 1 if unbiased else n).clamp(min=1)
        std = (src.new_zeros(dim_size).index_add(0, index, dev**2) / div + eps).sqrt()
        return std, dev, div, n

    @staticmethod
    def backward(ctx, grad):
        src, index = ctx.saved_tensors
        std, dev, div, n = ScatterStd.stats(src, index, *ctx.args)
        return (grad / std / div)[index] * dev, None, None, None, None
