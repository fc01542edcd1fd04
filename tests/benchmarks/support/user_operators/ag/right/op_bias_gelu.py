import math

import torch
from torch import Tensor

K0 = math.sqrt(2.0 / math.pi)
K1 = 0.044715


@torch.library.custom_op("fusedact_v1::bias_gelu", mutates_args=())
def _bias_gelu(x: Tensor, bias: Tensor, approximate: str) -> Tensor:
    return torch.nn.functional.gelu(x + bias, approximate=approximate)


@_bias_gelu.register_fake
def _(x, bias, approximate):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, bias, approximate = inputs
    ctx.save_for_backward(x, bias)
    ctx.approximate = approximate


def _backward(ctx, grad):
    x, bias = ctx.saved_tensors
    u = x + bias
    if ctx.approximate == "tanh":
        t = torch.tanh(K0 * (u + K1 * u ** 3))
        d = 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * K0 * (1 + 3 * K1 * u * u)
    else:
        d = 0.5 * (1 + torch.erf(u / math.sqrt(2.0))) + u * torch.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)
    gx = grad * d
    gb = gx.flatten(0, -2).sum(0)
    return gx, gb, None


_bias_gelu.register_autograd(_backward, setup_context=_setup)


def bias_gelu(x, bias, approximate="tanh"):
    """gelu(x + bias); x (..., C) of rank two or more, bias (C,)"""
    if bias.dim() != 1 or x.dim() < 2:
        raise ValueError("x must have rank two or more and bias rank one")
    return _bias_gelu(x, bias, approximate)
