import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _LSQ(torch.autograd.Function):
    # learned step size, straight-through rounding; x (N, C), step (C,)
    @staticmethod
    def forward(ctx, x, step, qn, qp):
        ctx.save_for_backward(x, step)
        ctx.range = qn, qp
        return torch.round((x / step).clamp(qn, qp)) * step

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        qn, qp = ctx.range
        v = x / step
        low, high = v < qn, v > qp
        mid = ~(low | high)
        ds = torch.where(mid, torch.round(v) - v, torch.zeros_like(v))
        ds = ds - low * qp + high * qp
        return g * mid, (g * ds).sum(0), None, None


class LSQAct(nn.Module):
    def __init__(self, channels, bits=3):
        super().__init__()
        self.step = nn.Parameter(torch.full((channels,), 0.25))
        self.qn, self.qp = -2 ** (bits - 1), 2 ** (bits - 1) - 1

    def forward(self, x):
        return _LSQ.apply(x, self.step, self.qn, self.qp)
