import torch
from torch.autograd.function import once_differentiable


class LSQ(torch.autograd.Function):
    """Learned step size quantisation (Esser et al. 2020). x any shape, s (1,), levels qn..qp, g = gradient scale of s"""

    @staticmethod
    def forward(ctx, x, s, qn, qp, g):
        ctx.save_for_backward(x, s)
        ctx.other = qn, qp, g
        return (x / s).clamp(qn, qp).round() * s

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        qn, qp, g = ctx.other
        v = x / s
        small, big = (v < qn).to(v.dtype), (v > qp).to(v.dtype)
        mid = 1 - small - big
        gs = ((small * qn + big * qp + mid * (v - v.round())) * grad).sum().reshape(s.shape) * g
        return mid * grad, gs, None, None, None
