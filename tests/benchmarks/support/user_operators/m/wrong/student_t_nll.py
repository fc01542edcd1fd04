import math

import torch
from torch.autograd.function import once_differentiable


def _sum_to(grad, shape):
    return grad.sum_to_size(shape) if grad.shape != shape else grad


class StudentTNLL(torch.autograd.Function):
    """Elementwise negative log likelihood of a location-scale Student-t.

    Args:
        x: observations, any shape.
        loc, scale, df: parameters, broadcastable against ``x``; ``scale > 0``, ``df > 0``.

    Returns:
        Tensor of the broadcast shape.
    """

    @staticmethod
    def forward(ctx, x, loc, scale, df):
        z = (x - loc) / scale
        ctx.save_for_backward(x, loc, scale, df)
        half = 0.5 * (df + 1.0)
        logp = (
            torch.lgamma(half)
            - torch.lgamma(0.5 * df)
            - 0.5 * torch.log(df * math.pi)
            - torch.log(scale)
            - half * torch.log1p(z * z / df)
        )
        return -logp

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, loc, scale, df = ctx.saved_tensors
        z = (x - loc) / scale
        z2 = z * z
        common = (df + 1.0) * z / (df + z2)
        grad_x = grad_loc = grad_scale = grad_df = None
        if ctx.needs_input_grad[0]:
            grad_x = _sum_to(grad_output * common / scale, x.shape)
        if ctx.needs_input_grad[1]:
            grad_loc = _sum_to(-grad_output * common / scale, loc.shape)
        if ctx.needs_input_grad[2]:
            grad_scale = _sum_to(grad_output * (1.0 - common * z) / scale, scale.shape)
        if ctx.needs_input_grad[3]:
            dlogp = 0.5 * (
                torch.digamma(0.5 * (df + 1.0))
                - torch.digamma(0.5 * df)
                - 1.0 / df
                - torch.log1p(z2 / df)
            )
            grad_df = _sum_to(-grad_output * dlogp, df.shape)
        return grad_x, grad_loc, grad_scale, grad_df
