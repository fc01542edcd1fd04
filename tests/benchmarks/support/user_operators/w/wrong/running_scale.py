import torch
from torch import nn


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, rms):
        ctx.save_for_backward(x, gain)
        ctx.rms = rms
        return x / rms * gain

    @staticmethod
    def backward(ctx, g):
        x, gain = ctx.saved_tensors
        lead = list(range(x.dim() - 1))
        ggain = g * x / ctx.rms
        return g * gain / ctx.rms, ggain.sum(lead) if lead else ggain, None


class RunningRMSScale(nn.Module):
    """Divide features (..., D) by their running RMS so far, then learn from this batch for the next."""

    def __init__(self, dim, momentum=0.1):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.register_buffer("rms", torch.ones(dim))
        self.momentum = momentum

    def forward(self, x):
        y = _Scale.apply(x, self.gain, self.rms)
        if self.training:
            with torch.no_grad():
                now = x.detach().reshape(-1, x.shape[-1]).pow(2).mean(0).sqrt()
                self.rms.mul_(1 - self.momentum).add_(now, alpha=self.momentum)
        return y
