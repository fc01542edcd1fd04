import torch
import torch.nn as nn


class _Gamma(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, gamma, gain, floor):
        xc = x.clamp(min=floor)
        ctx.save_for_backward(x, gamma)
        ctx.gain, ctx.floor = gain, floor
        return gain * xc ** gamma.view(-1, 1, 1)

    @staticmethod
    def backward(ctx, grad):
        x, gamma = ctx.saved_tensors
        gm = gamma.view(-1, 1, 1)
        lit = x > ctx.floor
        xc = x.clamp(min=ctx.floor)
        gx = grad * lit * ctx.gain * gm * xc ** (gm - 1)
        gg = (grad * lit * ctx.gain * xc ** gm * xc.log()).sum((0, 2, 3))
        return gx, gg, None, None


class GammaCorrection(nn.Module):
    """Per channel gamma curve on images (B, C, H, W); pixels are lifted to `floor` first."""

    def __init__(self, channels, gain=1.0, floor=1e-3):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((channels,), 2.2))
        self.gain = gain
        self.floor = floor

    def extra_repr(self):
        return f"gain={self.gain}, floor={self.floor}"

    def forward(self, x):
        return _Gamma.apply(x, self.gamma, self.gain, self.floor)
