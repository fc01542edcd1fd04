import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Biquad(Function):
    """Second order IIR section over the last axis, zero initial state.

    y[t] = b0 x[t] + b1 x[t-1] + b2 x[t-2] - a1 y[t-1] - a2 y[t-2]

    x: (..., T), b: (3,), a: (2,) without the leading 1.
    """

    @staticmethod
    def forward(ctx, x, b, a):
        y = torch.zeros_like(x)
        for t in range(x.shape[-1]):
            acc = b[0] * x[..., t]
            for k in (1, 2):
                if t >= k:
                    acc = acc + b[k] * x[..., t - k] - a[k - 1] * y[..., t - k]
            y[..., t] = acc
        ctx.save_for_backward(x, b, a, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, b, a, y = ctx.saved_tensors
        T = x.shape[-1]
        lam = gy.clone()
        for t in range(T - 1, -1, -1):
            for k in (1, 2):
                if t + k < T:
                    lam[..., t] -= a[k - 1] * lam[..., t + k]
        gx = b[0] * lam
        gb, ga = [(lam * x).sum()], []
        for k in (1, 2):
            gx[..., :T - k] += b[k] * lam[..., k:]
            gb.append((lam[..., k:] * x[..., :T - k]).sum())
            ga.append(-(lam[..., k:] * y[..., :T - k]).sum())
        return gx, torch.stack(gb), torch.stack(ga)
