import torch


class Asinh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.asinh()

    @staticmethod
    def backward(ctx, g):
        return AsinhGrad.apply(ctx.saved_tensors[0], g)


class AsinhGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x, g)
        return g * (1 + x * x).rsqrt()

    @staticmethod
    def backward(ctx, gg):
        x, g = ctx.saved_tensors
        r = (1 + x * x).rsqrt()
        return -gg * g * x * r**3, gg * r
