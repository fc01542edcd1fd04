import torch
from torch.autograd import Function


class FakeQuantPerChannel(Function):
    """Fake quantisation of x (C, N) with scale (C, 1) and integer zero point (C, 1).

    Straight-through estimator: round() is passed as identity to x where it was not clipped.
    scale gets the derivative at fixed codes.
    """

    @staticmethod
    def forward(ctx, x, scale, zero_point, qmin=0, qmax=255):
        ctx.save_for_backward(x, scale, zero_point)
        ctx.range = qmin, qmax
        q = torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax)
        return (q - zero_point) * scale

    @staticmethod
    def backward(ctx, g):
        x, scale, zero_point = ctx.saved_tensors
        qmin, qmax = ctx.range
        q = torch.round(x / scale) + zero_point
        keep = (q >= qmin) & (q <= qmax)
        gx = g * keep
        gs = (g * keep * (q - zero_point)).sum(1, keepdim=True)
        return gx, gs, None, None, None
