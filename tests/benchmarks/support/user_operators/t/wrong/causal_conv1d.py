import torch
import torch.nn.functional as F


def _shift(x, k):
    """delay by k samples"""
    return F.pad(x, (k, 0))[..., : x.shape[-1]]


def _advance(x, k):
    return F.pad(x, (0, k))[..., k:]


class CausalDepthwiseConv1d(torch.autograd.Function):
    """Depthwise causal convolution, (B, C, T) with (C, K); bias (C,) may be None."""

    @staticmethod
    def forward(ctx, x, weight, bias, dilation=1):
        ctx.dilation = dilation
        ctx.save_for_backward(x, weight)
        K = weight.shape[1]
        y = sum(weight[:, k, None] * _shift(x, (K - 1 - k) * dilation) for k in range(K))
        return y if bias is None else y + bias[:, None]

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        K, dil = weight.shape[1], ctx.dilation
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = sum(weight[:, k, None] * _advance(grad, (K - 1 - k) * dil) for k in range(K))
        if ctx.needs_input_grad[1]:
            gw = torch.stack([(grad * _shift(x, K - 1 - k)).sum((0, 2)) for k in range(K)], 1)
        if ctx.needs_input_grad[2]:
            gb = grad.sum((0, 2))
        return gx, gw, gb, None
