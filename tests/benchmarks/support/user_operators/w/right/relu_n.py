import torch


class ClippedReLU(torch.autograd.Function):
    """min(max(0, x), n)"""

    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x.clamp(0, n)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        grad_x = grad_output.clone()
        grad_x[(x <= 0) | (x >= ctx.n)] = 0
        return grad_x, None
