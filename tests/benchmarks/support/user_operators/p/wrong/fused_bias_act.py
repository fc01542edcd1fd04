import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _slope(out, negative_slope, scale):
    return torch.where(out > 0, torch.full_like(out, scale), torch.full_like(out, scale * negative_slope))


class FusedLeakyReLUBackward(Function):
    @staticmethod
    def forward(ctx, grad_output, out, negative_slope, scale):
        ctx.save_for_backward(out)
        ctx.negative_slope = negative_slope
        ctx.scale = scale
        grad_input = grad_output * _slope(out, negative_slope, scale)
        dims = [0] + list(range(2, out.dim()))
        return grad_input, grad_input.sum(dims)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradgrad_input, gradgrad_bias):
        out, = ctx.saved_tensors
        gg = gradgrad_input + gradgrad_bias.view(1, -1, *[1] * (out.dim() - 2))
        return gg * _slope(out, ctx.negative_slope, 1.0), None, None, None


class FusedLeakyReLU(Function):
    """scale * leaky_relu(x + bias), x (B, C, ...), bias (C,)"""

    @staticmethod
    def forward(ctx, x, bias, negative_slope=0.2, scale=math.sqrt(2)):
        out = torch.nn.functional.leaky_relu(x + bias.view(1, -1, *[1] * (x.dim() - 2)), negative_slope) * scale
        ctx.save_for_backward(out)
        ctx.negative_slope = negative_slope
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx, grad_output):
        out, = ctx.saved_tensors
        grad_input, grad_bias = FusedLeakyReLUBackward.apply(grad_output, out, ctx.negative_slope, ctx.scale)
        return grad_input, grad_bias, None, None
