import torch


class ScatterSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(src, index, dim_size):
        top = src.new_full((dim_size,), float("-inf")).scatter_reduce(0, index, src, "amax")
        e = torch.exp(src - top[index])
        out = e / src.new_zeros(dim_size).index_add(0, index, e)[index]
        return out

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, index, ctx.dim_size = inputs
        ctx.save_for_backward(output, index)

    @staticmethod
    def backward(ctx, grad):
        out, index = ctx.saved_tensors
        go = grad * out
        return go - out * go.sum(), None, None
