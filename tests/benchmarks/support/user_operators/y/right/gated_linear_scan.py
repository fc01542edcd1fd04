import torch
from torch.autograd.function import once_differentiable


class GatedScan(torch.autograd.Function):
    """h_t = a_t * h_{t-1} + b_t; a, b: (B, T, D), h0: (B, D) or None. Gives all states and the last one."""

    @staticmethod
    def forward(ctx, a, b, h0=None):
        h = torch.zeros_like(a[:, 0]) if h0 is None else h0
        first = h
        hs = []
        for t in range(a.shape[1]):
            h = a[:, t] * h + b[:, t]
            hs.append(h)
        hs = torch.stack(hs, 1)
        ctx.has_h0 = h0 is not None
        ctx.save_for_backward(a, hs, first)
        return hs, h

    @staticmethod
    @once_differentiable
    def backward(ctx, dhs, dlast):
        a, hs, first = ctx.saved_tensors
        prev = torch.cat([first[:, None], hs[:, :-1]], 1)
        db = torch.empty_like(a)
        carry = dlast
        for t in range(a.shape[1] - 1, -1, -1):
            db[:, t] = dhs[:, t] + carry
            carry = a[:, t] * db[:, t]
        da = db * prev
        return da, db, carry if ctx.has_h0 else None
