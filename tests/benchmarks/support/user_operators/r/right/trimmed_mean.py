import torch


class TrimmedMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, dim=-1):
        n = x.shape[dim]
        s, order = x.sort(dim)
        ctx.save_for_backward(order)
        ctx.k, ctx.dim, ctx.n = k, dim, n
        return s.narrow(dim, k, n - 2 * k).mean(dim)

    @staticmethod
    def backward(ctx, g):
        order, = ctx.saved_tensors
        keep = order.narrow(ctx.dim, ctx.k, ctx.n - 2 * ctx.k)
        g = g.unsqueeze(ctx.dim).expand(keep.shape) / keep.shape[ctx.dim]
        return g.new_zeros(order.shape).scatter(ctx.dim, keep, g), None, None
