import torch


class ISRUBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x, alpha):
        r = (1 + alpha * x * x).rsqrt()
        ctx.save_for_backward(g, x)
        ctx.alpha = alpha
        return g * r**3

    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        r = (1 + ctx.alpha * x * x).rsqrt()
        return gg * r**3, -3 * gg * g * x * r**5, None


class ISRU(torch.autograd.Function):
    """Inverse square root unit x / sqrt(1 + alpha x^2), with its own second derivative."""

    @staticmethod
    def forward(ctx, x, alpha=1.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return x * (1 + alpha * x * x).rsqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ISRUBackward.apply(g, x, ctx.alpha), None
