import torch


class Morse(torch.autograd.Function):
    """D (1 - exp(-a (r - r0)))^2, elementwise; all four of one shape."""

    @staticmethod
    def forward(ctx, r, D, a, r0):
        ctx.save_for_backward(r, D, a, r0)
        return D * (1 - torch.exp(-a * (r - r0))) ** 2

    @staticmethod
    def backward(ctx, grad):
        r, D, a, r0 = ctx.saved_tensors
        e = torch.exp(-a * (r - r0))
        slope = grad * 2 * D * (1 - e) * e
        return slope * a, grad * (1 - e) ** 2, slope * r, -slope * a
