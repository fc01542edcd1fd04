import torch


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, keepdim=False):
        m = x.amax(dim, keepdim=True)
        s = (x - m).exp().sum(dim, keepdim=True).log() + m
        out = s if keepdim else s.squeeze(dim)
        ctx.save_for_backward(x, out)
        ctx.dim, ctx.keepdim = dim, keepdim
        return out

    @staticmethod
    def backward(ctx, g):
        x, out = ctx.saved_tensors
        if not ctx.keepdim:
            g, out = g.unsqueeze(ctx.dim), out.unsqueeze(ctx.dim)
        return g * (x - out).exp(), None, None
