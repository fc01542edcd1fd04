import math

import torch


class RMSNormFunction(torch.autograd.Function):
    """RMS normalisation over the trailing ``normalized_shape`` dimensions, with an optional gain of that shape."""

    @staticmethod
    def forward(x, normalized_shape, weight=None, eps=1e-6):
        if x.is_complex():
            raise TypeError("x must be real")
        k = len(normalized_shape)
        if k == 0 or tuple(x.shape[-k:]) != tuple(normalized_shape):
            raise ValueError(f"expected trailing shape {tuple(normalized_shape)}, got {tuple(x.shape)}")
        if weight is not None and tuple(weight.shape) != tuple(normalized_shape):
            raise ValueError("weight must have the normalized shape")
        dims = tuple(range(-k, 0))
        y = x * torch.rsqrt(x.pow(2).mean(dims, keepdim=True) + eps)
        return y if weight is None else y * weight

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, normalized_shape, weight, eps = inputs
        ctx.save_for_backward(x, weight)
        ctx.normalized_shape = tuple(normalized_shape)
        ctx.eps = eps

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        dims = tuple(range(-len(ctx.normalized_shape), 0))
        r = torch.rsqrt(x.pow(2).mean(dims, keepdim=True) + ctx.eps)
        gw = grad if weight is None else grad * weight
        dot = (gw * x).sum(dims, keepdim=True) / x.size(-1)
        g_x = r * gw - x * r.pow(3) * dot
        g_weight = None
        if weight is not None and ctx.needs_input_grad[2]:
            g_weight = (grad * x * r).sum_to_size(weight.shape)
        return g_x, None, g_weight, None
