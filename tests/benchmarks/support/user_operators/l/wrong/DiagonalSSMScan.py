from typing import Optional

import torch
from torch import Tensor
from torch.autograd import Function


class DiagonalSSMScan(Function):
    """h_t = a * h_{t-1} + b * x_t, for a diagonal real state-space model.

    Args:
        x: (B, T, N) inputs, T >= 1
        a: (N,) decay of every channel
        b: (N,) input gain of every channel
        h0: (B, N) initial state, zeros if None
    Returns:
        h: (B, T, N)
    """

    @staticmethod
    def forward(ctx, x: Tensor, a: Tensor, b: Tensor, h0: Optional[Tensor] = None) -> Tensor:
        h = torch.zeros_like(x[:, 0]) if h0 is None else h0
        states = []
        for t in range(x.size(1)):
            h = a * h + b * x[:, t]
            states.append(h)
        out = torch.stack(states, dim=1)
        ctx.save_for_backward(x, a, b, h0, out)
        return out

    @staticmethod
    def backward(ctx, grad_out: Tensor):
        x, a, b, h0, out = ctx.saved_tensors
        first = torch.zeros_like(out[:, 0]) if h0 is None else h0
        prev = torch.cat([first.unsqueeze(1), out[:, :-1]], dim=1)
        carry = torch.zeros_like(out[:, 0])
        adj = []
        for t in range(out.size(1) - 1, -1, -1):
            carry = grad_out[:, t] + a * carry
            adj.append(carry)
        adj = torch.stack(adj[::-1], dim=1)
        grad_x = b * adj
        grad_a = (adj * prev).sum(dim=(0, 1))
        grad_b = (adj * x).sum(dim=(0, 1))
        grad_h0 = None if h0 is None else adj[:, 0]
        return grad_x, grad_a, grad_b, grad_h0
