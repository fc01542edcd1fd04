import torch


class SwishGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x):
        ctx.save_for_backward(g, x)
        s = torch.sigmoid(x)
        return g * s * (1 + x * (1 - s))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        s = torch.sigmoid(x)
        d1 = s * (1 + x * (1 - s))
        d2 = s * (1 - s) * (1 + x * (1 - 2 * s))
        return gg * d1, gg * g * d2


class MemoryEfficientSwish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.is_complex():
            raise TypeError("complex inputs are not supported")
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return SwishGrad.apply(g, x)
