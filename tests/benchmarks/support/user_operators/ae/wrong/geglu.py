import math

import torch

_C = math.sqrt(2.0 / math.pi)
_K = 0.044715


def _gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(_C * (x + _K * x ** 3)))


def _gelu_tanh_grad(x):
    t = torch.tanh(_C * (x + _K * x * x * x))
    inner = _C * (1 + _K * x * x)
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner


class _GEGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, value):
        ctx.save_for_backward(gate, value)
        return _gelu_tanh(gate) * value

    @staticmethod
    def backward(ctx, dy):
        gate, value = ctx.saved_tensors
        return dy * value * _gelu_tanh_grad(gate), dy * _gelu_tanh(gate)


def geglu(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """tanh-approximated GELU(gate) * value, both packed along ``dim``."""
    gate, value = x.chunk(2, dim=dim)
    return _GEGLU.apply(gate, value)
