import math

import torch

K = math.sqrt(2 / math.pi)


def _gelu(c):
    return 0.5 * c * (1 + torch.tanh(K * (c + 0.044715 * c**3)))


def _dgelu(c):
    t = torch.tanh(K * (c + 0.044715 * c**3))
    return 0.5 * (1 + t) + 0.5 * c * (1 - t * t) * K * (1 + 3 * 0.044715 * c * c)


class BiasGEGLU(torch.autograd.Function):
    """Fused bias and GEGLU (tanh approximation): x (..., 2 d), bias (2 d,) -> (..., d)."""

    @staticmethod
    def forward(ctx, x, bias):
        ctx.save_for_backward(x, bias)
        a, c = (x + bias).chunk(2, dim=-1)
        return a * _gelu(c)

    @staticmethod
    def backward(ctx, grad_out):
        x, bias = ctx.saved_tensors
        a, c = (x + bias).chunk(2, dim=-1)
        gx = torch.cat([grad_out * _gelu(c), grad_out * a * _dgelu(c)], dim=-1)
        return gx, gx.sum_to_size(bias.shape)
