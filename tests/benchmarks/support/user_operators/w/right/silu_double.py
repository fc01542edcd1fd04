import torch


class SiluGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(g, x)
        return g * s * (1 + x * (1 - s))

    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        s = torch.sigmoid(x)
        first = s * (1 + x * (1 - s))
        second = s * (1 - s) * (2 + x * (1 - 2 * s))
        return gg * first, gg * g * second


class Silu(torch.autograd.Function):
    """SiLU with its own double backward (for force training)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return SiluGrad.apply(g, x)
