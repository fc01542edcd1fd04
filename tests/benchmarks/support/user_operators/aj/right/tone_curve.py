import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


def _locate(x, K):
    pos = x.clamp(0, 1) * (K - 1)
    i = pos.floor().long().clamp(0, K - 2)
    return i, pos - i


class _Curve(torch.autograd.Function):
    # x (B, C, ...), knots (C, K)
    @staticmethod
    def forward(ctx, x, knots):
        ctx.save_for_backward(x, knots)
        C, K = knots.shape
        i, w = _locate(x, K)
        chan = torch.arange(C, device=x.device).view(1, C, *[1] * (x.dim() - 2)).expand_as(i)
        return (1 - w) * knots[chan, i] + w * knots[chan, i + 1]

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, knots = ctx.saved_tensors
        C, K = knots.shape
        i, w = _locate(x, K)
        chan = torch.arange(C, device=x.device).view(1, C, *[1] * (x.dim() - 2)).expand_as(i)
        gx = gk = None
        if ctx.needs_input_grad[0]:
            inside = (x >= 0) & (x <= 1)
            gx = g * inside * (knots[chan, i + 1] - knots[chan, i]) * (K - 1)
        if ctx.needs_input_grad[1]:
            gk = torch.zeros_like(knots)
            gk.index_put_((chan, i), g * (1 - w), accumulate=True)
            gk.index_put_((chan, i + 1), g * w, accumulate=True)
        return gx, gk


class ToneCurve(nn.Module):
    def __init__(self, channels=3, knots=8):
        super().__init__()
        self.knots = nn.Parameter(torch.linspace(0, 1, knots).repeat(channels, 1))

    def forward(self, img):
        return _Curve.apply(img, self.knots)
