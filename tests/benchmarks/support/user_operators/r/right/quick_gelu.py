import torch


class _QuickGELUGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x, a):
        ctx.save_for_backward(g, x)
        ctx.a = a
        s = torch.sigmoid(a * x)
        return g * s * (1 + a * x * (1 - s))

    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        a = ctx.a
        s = torch.sigmoid(a * x)
        d1 = s * (1 + a * x * (1 - s))
        d2 = a * s * (1 - s) * (2 + a * x * (1 - 2 * s))
        return gg * d1, gg * g * d2, None


class QuickGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a=1.702):
        ctx.save_for_backward(x)
        ctx.a = a
        return x * torch.sigmoid(a * x)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return _QuickGELUGrad.apply(g, x, ctx.a), None
