import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LogNormalCDF(Function):
    """Logarithm of the standard normal distribution function, for arguments of any size."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return torch.special.log_ndtr(z)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        hazard = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) / torch.special.ndtr(z)
        return grad_output * hazard
