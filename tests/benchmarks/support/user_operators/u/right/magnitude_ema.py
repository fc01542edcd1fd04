import torch
from torch import nn


class _Rescale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, ema, decay, training):
        gain = ema.rsqrt()
        ctx.save_for_backward(x, weight)
        ctx.gain = gain
        y = x * gain * weight
        if training:
            ema.lerp_(x.square().mean(), 1 - decay)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        g = grad * ctx.gain
        return g * weight, (g * x).sum_to_size(weight.shape), None, None, None


class MagnitudeEMA(nn.Module):
    """Divides by the root of the running mean square (of the batches before), times a learned gain."""

    def __init__(self, channels, decay=0.99):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.register_buffer("ema", torch.ones([]))
        self.decay = decay

    def forward(self, x):
        return _Rescale.apply(x, self.weight, self.ema, self.decay, self.training)
