import math
import torch
import torch.nn as nn


class _ATanSpike(torch.autograd.Function):
    # forward is a Heaviside step; the backward is on purpose NOT its derivative but a surrogate,
    # that of arctan(pi/2 * alpha * x) / pi + 1/2
    @staticmethod
    def forward(ctx, v, threshold, alpha):
        x = v - threshold
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x >= 0).to(v.dtype)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        a = ctx.alpha
        sg = a / 2 / (1 + (math.pi / 2 * a * x) ** 2) * g
        return sg, sg.reshape(-1, sg.shape[-1]).sum(0), None


class SpikeATan(nn.Module):
    """Spike generation with a learned threshold for each neuron (last axis)."""

    def __init__(self, neurons, v_threshold=1.0, alpha=2.0):
        super().__init__()
        self.threshold = nn.Parameter(torch.full((neurons,), float(v_threshold)))
        self.alpha = alpha

    def forward(self, v):
        return _ATanSpike.apply(v, self.threshold, self.alpha)
