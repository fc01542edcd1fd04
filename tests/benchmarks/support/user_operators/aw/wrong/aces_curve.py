import math

import torch
from torch import nn
from torch.autograd import Function

A, B, C, D, E = 2.51, 0.03, 2.43, 0.59, 0.14


class _Curve(Function):
    @staticmethod
    def forward(ctx, hdr, ev):
        ctx.save_for_backward(hdr, ev)
        v = hdr * torch.exp2(ev)
        return (v * (A * v + B) / (v * (C * v + D) + E)).clamp(0, 1)

    @staticmethod
    def backward(ctx, g):
        hdr, ev = ctx.saved_tensors
        gain = torch.exp2(ev)
        v = hdr * gain
        num, den = v * (A * v + B), v * (C * v + D) + E
        inside = (num >= 0) & (num <= den)
        dv = g * ((2 * A * v + B) * den - num * (2 * C * v + D)) / den ** 2
        return dv * gain, (dv * v * math.log(2)).sum_to_size(ev.shape)


class ACESToneMap(nn.Module):
    """hdr (B, 3, H, W), exposure learned per channel or one for all (in stops)."""

    def __init__(self, per_channel=True):
        super().__init__()
        self.ev = nn.Parameter(torch.zeros(3, 1, 1) if per_channel else torch.zeros(()))

    def forward(self, hdr):
        return _Curve.apply(hdr, self.ev)
