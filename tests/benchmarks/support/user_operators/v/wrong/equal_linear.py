import math

import torch
from torch import nn
from torch.autograd import Function


class EqualLinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias, scale, lr_mul):
        ctx.save_for_backward(input, weight)
        ctx.scale = scale
        ctx.lr_mul = lr_mul
        out = input.matmul(weight.t() * scale)
        if bias is not None:
            out = out + bias * lr_mul
        return out

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        flat = grad_output.reshape(-1, grad_output.shape[-1])
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.matmul(weight) * ctx.scale
        if ctx.needs_input_grad[1]:
            grad_weight = flat.t().matmul(input.reshape(-1, input.shape[-1])) * ctx.scale
        if ctx.needs_input_grad[2]:
            grad_bias = flat.sum(0)
        return grad_input, grad_weight, grad_bias, None, None


class EqualLinear(nn.Module):

    def __init__(self, in_dim, out_dim, bias=True, bias_init=0, lr_mul=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_dim, in_dim).div_(lr_mul))
        self.bias = nn.Parameter(torch.full((out_dim,), float(bias_init))) if bias else None
        self.scale = lr_mul / math.sqrt(in_dim)
        self.lr_mul = lr_mul

    def forward(self, input):
        return EqualLinearFunction.apply(input, self.weight, self.bias, self.scale, self.lr_mul)
