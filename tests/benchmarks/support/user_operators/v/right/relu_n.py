import torch


class ReLUN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n=6.0):
        ctx.save_for_backward(x)
        ctx.n = n
        return x.clamp(0, n)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x < 0] = 0
        grad_input[x > ctx.n] = 0
        return grad_input, None
