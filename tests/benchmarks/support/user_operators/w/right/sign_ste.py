import torch


class BinarizeSTE(torch.autograd.Function):
    """sign(x); the gradient is passed straight through where |x| <= 1 (Courbariaux et al.)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x.abs() > 1] = 0
        return grad_input


class BinaryActivation(torch.nn.Module):
    def forward(self, x):
        return BinarizeSTE.apply(x)
