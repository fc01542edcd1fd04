import torch


class Saturate(torch.autograd.Function):
    """Actuator limits: clamp commands (B, C) to per-channel bounds lower, upper (C,).

    A command on a bound counts as inside.
    """

    @staticmethod
    def forward(ctx, command, lower, upper):
        ctx.save_for_backward(command < lower, command > upper)
        return torch.minimum(torch.maximum(command, lower), upper)

    @staticmethod
    def backward(ctx, grad_output):
        below, above = ctx.saved_tensors
        grad_command = grad_output.masked_fill(below | above, 0.0)
        grad_lower = (grad_output * below).sum(0)
        grad_upper = (grad_output * above).sum(0)
        return grad_command, grad_lower, grad_upper
