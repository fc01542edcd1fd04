import torch
from torch.autograd.function import once_differentiable


class LSQ(torch.autograd.Function):
    """Learned step size quantisation (Esser et al., 2020), without the gradient scale.

    x: any shape, step: scalar tensor > 0, levels qmin ... qmax.
    """

    @staticmethod
    def forward(ctx, x, step, qmin, qmax):
        ctx.save_for_backward(x, step)
        ctx.qmin, ctx.qmax = qmin, qmax
        return (x / step).clamp(qmin, qmax).round() * step

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        v = x / step
        low, high = v < ctx.qmin, v > ctx.qmax
        gx = g.masked_fill(low | high, 0)
        gs = (v.round() - v).masked_fill(low, ctx.qmin).masked_fill(high, ctx.qmax)
        return gx, (g * gs).sum(), None, None
