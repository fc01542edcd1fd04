import torch
from torch.autograd.function import once_differentiable


class IntegerSpike(torch.autograd.Function):
    """Integer LIF firing for training spiking transformers: round(clamp(u, 0, D)) / D.

    At inference the D levels become D binary time steps. The surrogate gradient is that of
    clamp(u, 0, D) / D (rounding is skipped).
    """

    @staticmethod
    def forward(ctx, u, D=4):
        ctx.save_for_backward(u)
        ctx.D = D
        return torch.round(torch.clamp(u, 0, D)) / D

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (u,) = ctx.saved_tensors
        inside = (u >= 0) & (u <= ctx.D)
        return grad_output * inside / ctx.D, None
