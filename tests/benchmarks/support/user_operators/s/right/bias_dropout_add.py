import torch


class BDA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, mask, p, training, residual=None):
        h = x + bias
        if training:
            h = h * mask / (1 - p)
        ctx.save_for_backward(mask)
        ctx.p, ctx.training, ctx.bshape = p, training, bias.shape
        ctx.has_res = residual is not None
        return h + residual if ctx.has_res else h

    @staticmethod
    def backward(ctx, g):
        mask, = ctx.saved_tensors
        gh = g
        if ctx.training:
            gh = g * mask / (1 - ctx.p)
        return gh, gh.sum_to_size(ctx.bshape), None, None, None, g if ctx.has_res else None
