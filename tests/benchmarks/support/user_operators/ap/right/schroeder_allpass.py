import torch
from torch.autograd.function import once_differentiable


def _shift(x, d):
    return torch.nn.functional.pad(x, (d, 0))[..., : x.shape[-1]]


def _feedback(x, g, d):
    y = x.clone()
    for t in range(d, x.shape[-1]):
        y[..., t] += g * y[..., t - d]
    return y


class SchroederAllpass(torch.autograd.Function):
    """y[n] = -g x[n] + x[n-D] + g y[n-D], zero initial state. x: (..., T), g: scalar tensor."""

    @staticmethod
    def forward(ctx, x, g, delay):
        y = _feedback(_shift(x, delay) - g * x, g, delay)
        ctx.save_for_backward(x, g, y)
        ctx.delay = delay
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, g, y = ctx.saved_tensors
        d = ctx.delay
        lam = _feedback(grad.flip(-1), g, d).flip(-1)
        gx = _shift(lam.flip(-1), d).flip(-1) - g * lam
        gg = (lam * (_shift(y, d) - x)).sum()
        return gx, gg, None
