from typing import Optional

import torch
from torch import Tensor


class LinearScan(torch.autograd.Function):
    r"""h_t = a_t * h_{t-1} + x_t along dim 1.

    Args:
        a (Tensor): decay, ``(B, T, D)``
        x (Tensor): input, ``(B, T, D)``
        h0 (Tensor, optional): ``(B, D)``, zeros when left out
        reverse (bool): run from the last step to the first
    """

    @staticmethod
    def forward(ctx, a: Tensor, x: Tensor, h0: Optional[Tensor] = None, reverse: bool = False) -> Tensor:
        if a.shape != x.shape:
            raise ValueError(f"a {tuple(a.shape)} and x {tuple(x.shape)} differ")
        T = x.size(1)
        order = range(T - 1, -1, -1) if reverse else range(T)
        h = torch.zeros_like(x[:, 0]) if h0 is None else h0
        out = torch.empty_like(x)
        for t in order:
            h = a[:, t] * h + x[:, t]
            out[:, t] = h
        ctx.save_for_backward(a, out, h0)
        ctx.reverse = reverse
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        a, out, h0 = ctx.saved_tensors
        T = a.size(1)
        first = torch.zeros_like(out[:, 0]) if h0 is None else h0
        steps = list(range(T - 1, -1, -1) if ctx.reverse else range(T))

        dh = [None] * T
        da = [None] * T
        carry = torch.zeros_like(first)
        for i in reversed(range(T)):
            t = steps[i]
            prev = out[:, t - 1] if i > 0 else first
            total = grad[:, t] + carry
            dh[t] = total
            da[t] = total * prev
            carry = total * a[:, t]
        dh0 = carry if h0 is not None else None
        return torch.stack(da, 1), torch.stack(dh, 1), dh0, None
