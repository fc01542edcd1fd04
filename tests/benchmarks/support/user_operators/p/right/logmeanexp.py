import math

import torch


class LogMeanExp(torch.autograd.Function):
    """log(mean(exp(x))) along one dimension"""

    @staticmethod
    def forward(x, dim=-1, keepdim=False):
        return torch.logsumexp(x, dim, keepdim=keepdim) - math.log(x.size(dim))

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, dim, keepdim = inputs
        ctx.save_for_backward(x)
        ctx.dim = dim
        ctx.keepdim = keepdim

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        if not ctx.keepdim:
            grad_output = grad_output.unsqueeze(ctx.dim)
        return grad_output * torch.softmax(x, ctx.dim), None, None
