"""LSTM cell with the pointwise part fused into one autograd node."""
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


class LSTMState(NamedTuple):
    h: Tensor
    c: Tensor


class _Pointwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates, c, forget_bias):
        ctx.save_for_backward(gates, c)
        ctx.forget_bias = forget_bias
        i, f, g, o = gates.chunk(4, dim=-1)
        c_new = torch.sigmoid(f + forget_bias) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c_new), c_new

    @staticmethod
    def backward(ctx, grad_h, grad_c):
        gates, c = ctx.saved_tensors
        i, f, g, o = gates.chunk(4, dim=-1)
        i, g, o = torch.sigmoid(i), torch.tanh(g), torch.sigmoid(o)
        f = torch.sigmoid(f + ctx.forget_bias)
        th = torch.tanh(f * c + i * g)
        dc = grad_c + grad_h * o * (1 - th * th)
        d_gates = torch.cat([
            dc * g * i * (1 - i),
            dc * c * f * (1 - f),
            dc * i * (1 - g * g),
            grad_h * th * o * (1 - o),
        ], dim=-1)
        return d_gates, dc * f, None


class FusedLSTMCell(nn.Module):
    """One LSTM step; gate order i, f, g, o.

    Args:
        input_size, hidden_size: widths
        forget_bias: constant added to the forget gate before the sigmoid

    Shapes: x (B, input_size), h and c (B, hidden_size); returns LSTMState(h, c).
    """

    def __init__(self, input_size: int, hidden_size: int, forget_bias: float = 0.0) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(4 * hidden_size))
        self.forget_bias = forget_bias
        nn.init.xavier_uniform_(self.weight_ih)
        nn.init.orthogonal_(self.weight_hh)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> LSTMState:
        gates = F.linear(x, self.weight_ih, self.bias) + F.linear(h, self.weight_hh)
        return LSTMState(*_Pointwise.apply(gates, c, self.forget_bias))
