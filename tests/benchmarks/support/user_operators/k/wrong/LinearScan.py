"""First-order linear recurrence, the core of diagonal state space models."""
from typing import Optional

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _scan(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    out = []
    for t in range(a.size(1)):
        h = a[:, t] * h + b[:, t]
        out.append(h)
    return torch.stack(out, dim=1)


class LinearScan(Function):
    """h[t] = a[t] * h[t - 1] + b[t] along axis 1.

    Args:
        a, b: (B, T, D)
        h0: state before the first step (B, D), zeros if None
        reverse: run from the end, h[t] = a[t] * h[t + 1] + b[t]

    Returns:
        all the states (B, T, D)
    """

    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor, h0: Optional[Tensor] = None, reverse: bool = False) -> Tensor:
        start = torch.zeros_like(b[:, 0]) if h0 is None else h0
        if reverse:
            h = _scan(a.flip(1), b.flip(1), start).flip(1)
        else:
            h = _scan(a, b, start)
        ctx.save_for_backward(a, h, start)
        ctx.reverse, ctx.has_h0 = reverse, h0 is not None
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):
        a, h, start = ctx.saved_tensors
        if ctx.reverse:
            a, h, g = a.flip(1), h.flip(1), g.flip(1)
        prev = torch.cat((start.unsqueeze(1), h[:, :-1]), dim=1)
        acc = torch.zeros_like(start)
        gb = torch.empty_like(g)
        for t in range(a.size(1) - 1, -1, -1):
            acc = acc + g[:, t]
            gb[:, t] = acc
            acc = acc * a[:, t]
        ga = gb * prev
        if ctx.reverse:
            gb = gb.flip(1)
        return ga, gb, (acc if ctx.has_h0 else None), None
