import torch
from torch.autograd.function import once_differentiable


class EmaSmoother(torch.autograd.Function):
    """First order smoother: ``y[t] = (1 - s) y[t-1] + s x[t]``.

    Shapes: x (B, C, T); s (C,); init (B, C) or None, which starts from x[..., 0].
    """

    @staticmethod
    def forward(ctx, x, s, init=None):
        prev = x[..., 0] if init is None else init
        steps = []
        for t in range(x.size(-1)):
            prev = (1 - s) * prev + s * x[..., t]
            steps.append(prev)
        y = torch.stack(steps, -1)
        ctx.no_init = init is None
        ctx.save_for_backward(x, s, y, init)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, s, y, init = ctx.saved_tensors
        first = x[..., 0] if ctx.no_init else init
        gx = torch.empty_like(x)
        gs = torch.zeros_like(s)
        carry = torch.zeros_like(first)
        for t in reversed(range(x.size(-1))):
            carry = carry + gy[..., t]
            before = y[..., t - 1] if t > 0 else first
            gs += (carry * (x[..., t] - y[..., t])).sum(0)
            gx[..., t] = s * carry
            carry = (1 - s) * carry
        if ctx.no_init:
            gx[..., 0] += carry
            return gx, gs, None
        return gx, gs, carry
