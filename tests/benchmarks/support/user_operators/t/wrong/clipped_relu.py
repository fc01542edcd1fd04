import torch


class ClippedReLU(torch.autograd.Function):
    """
    We can implement our own custom autograd Functions by subclassing
    torch.autograd.Function and implementing the forward and backward passes.
    """

    @staticmethod
    def forward(ctx, input, max_value):
        ctx.save_for_backward(input)
        ctx.max_value = max_value
        return input.clamp(min=0, max=max_value)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_input = grad_output
        grad_input[(input < 0) | (input > ctx.max_value)] = 0
        return grad_input, None
