import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class InstanceNormFn(Function):
    @staticmethod
    def forward(ctx, input, weight=None, bias=None, eps=1e-5):
        dims = tuple(range(2, input.dim()))
        mean = input.mean(dims, keepdim=True)
        var = input.var(dims, unbiased=False, keepdim=True)
        rstd = (var + eps).rsqrt()
        xhat = (input - mean) * rstd
        ctx.save_for_backward(xhat, rstd, weight)
        ctx.dims = dims
        ctx.has_bias = bias is not None
        shape = (1, -1) + (1,) * len(dims)
        out = xhat
        if weight is not None:
            out = out * weight.view(shape)
        if bias is not None:
            out = out + bias.view(shape)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        dims = ctx.dims
        grad_weight = grad_bias = None
        g = grad_output
        if weight is not None:
            grad_weight = (grad_output * xhat).sum((0,) + dims)
            g = g * weight.view((1, -1) + (1,) * len(dims))
        if ctx.has_bias:
            grad_bias = grad_output.sum((0,) + dims)
        gm = g.mean(dims, keepdim=True)
        gxm = (g * xhat).mean(dims, keepdim=True)
        return rstd * (g - gm - xhat * gxm), grad_weight, grad_bias, None
