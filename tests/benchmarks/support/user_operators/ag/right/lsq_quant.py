# LSQ: learned step size quantisation (Esser et al. 2020)
import torch
import torch.nn as nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LSQFunction(Function):

    @staticmethod
    def forward(ctx, x, step, qn, qp, gscale):
        v = x / step
        ctx.save_for_backward(v, step)
        ctx.opts = qn, qp, gscale
        return v.clamp(qn, qp).round() * step

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        v, step = ctx.saved_tensors
        qn, qp, gscale = ctx.opts
        low = (v < qn).to(g.dtype)
        high = (v > qp).to(g.dtype)
        mid = 1 - low - high
        dstep = low * qn + high * qp + mid * (v.round() - v)
        return g * mid, (g * dstep).sum().reshape(step.shape) * gscale, None, None, None


class LSQQuantizer(nn.Module):
    """Straight-through for values within the range; the step's gradient is that of the paper, with its
    gradient scale 1/sqrt(numel * Qp)."""

    def __init__(self, bits=4, signed=True, init_step=0.1):
        super().__init__()
        self.qn = -2 ** (bits - 1) if signed else 0
        self.qp = 2 ** (bits - 1) - 1 if signed else 2 ** bits - 1
        self.step = nn.Parameter(torch.tensor([float(init_step)]))

    def forward(self, x):
        gscale = 1.0 / (x.numel() * self.qp) ** 0.5
        return LSQFunction.apply(x, self.step, self.qn, self.qp, gscale)
