import torch
import torch.nn as nn
from torch import Tensor


@torch.library.custom_op("fusednorm::dyt", mutates_args=())
def dyt(x: Tensor, alpha: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.tanh(alpha * x) * weight + bias


def _setup(ctx, inputs, output):
    x, alpha, weight, _ = inputs
    ctx.save_for_backward(x, alpha, weight)


def _backward(ctx, grad):
    x, alpha, weight = ctx.saved_tensors
    t = torch.tanh(alpha * x)
    d_bias = grad.reshape(-1, x.size(-1)).sum(0)
    d_weight = (grad * t).reshape(-1, x.size(-1)).sum(0)
    da = grad.mul_(weight * (1 - t * t))
    return da * alpha, (da * x).sum().reshape(alpha.shape), d_weight, d_bias


dyt.register_autograd(_backward, setup_context=_setup)


class DynamicTanh(nn.Module):
    """tanh(alpha x) * weight + bias in place of a norm. x (..., D)"""

    def __init__(self, dim: int, alpha: float = 0.5) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.full((1,), alpha))
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.fusednorm.dyt(x, self.alpha, self.weight, self.bias)
