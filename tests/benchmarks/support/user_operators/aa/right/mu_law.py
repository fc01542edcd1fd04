import math

import torch
from torch import Tensor


class MuLawCompress(torch.autograd.Function):
    """sgn(x) log(1 + mu|x|) / log(1 + mu), input limited to [-1, 1] first"""

    @staticmethod
    def forward(ctx, x: Tensor, quantization_channels: int = 256):
        mu = quantization_channels - 1.0
        ctx.mu = mu
        ctx.save_for_backward(x)
        x = x.clamp(-1.0, 1.0)
        return x.sign() * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def backward(ctx, grad_output: Tensor):
        (x,) = ctx.saved_tensors
        mu = ctx.mu
        inside = (x.abs() <= 1.0).to(grad_output.dtype)
        slope = mu / ((1 + mu * x.abs()) * math.log1p(mu))
        return grad_output * slope * inside, None
