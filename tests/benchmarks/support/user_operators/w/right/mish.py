import torch
import torch.nn.functional as F


class MishFunction(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        return grad * (t + x * (1 - t * t) * torch.sigmoid(x))


class Mish(torch.nn.Module):
    """Memory-efficient Mish: only the input is kept."""

    def forward(self, x):
        return MishFunction.apply(x)
