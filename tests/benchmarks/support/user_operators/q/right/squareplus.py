import torch


class SquarePlusBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x, b):
        ctx.save_for_backward(g, x)
        ctx.b = b
        return g * 0.5 * (1 + x / torch.sqrt(x * x + b))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        r = torch.sqrt(x * x + ctx.b)
        return gg * 0.5 * (1 + x / r), gg * g * 0.5 * ctx.b / r ** 3, None


class SquarePlus(torch.autograd.Function):
    """(x + sqrt(x^2 + b)) / 2, a softplus without exponentials; twice differentiable by hand."""

    @staticmethod
    def forward(ctx, x, b=4.0):
        if x.is_complex():
            raise TypeError("real only")
        ctx.save_for_backward(x)
        ctx.b = b
        return 0.5 * (x + torch.sqrt(x * x + b))

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return SquarePlusBackward.apply(g, x, ctx.b), None
