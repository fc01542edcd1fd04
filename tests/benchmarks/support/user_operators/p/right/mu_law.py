import math

import torch


class MuLawCompand(torch.autograd.Function):
    """Continuous mu-law companding of a waveform; samples outside [-1, 1] are clipped first."""

    @staticmethod
    def forward(wav, mu=255.0):
        x = wav.clamp(-1.0, 1.0)
        return torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def setup_context(ctx, inputs, output):
        wav, mu = inputs
        ctx.save_for_backward(wav)
        ctx.mu = mu

    @staticmethod
    def backward(ctx, grad):
        wav, = ctx.saved_tensors
        x = wav.clamp(-1.0, 1.0)
        slope = ctx.mu / (math.log1p(ctx.mu) * (1.0 + ctx.mu * x.abs()))
        inside = wav.abs() <= 1.0
        return grad * slope * inside, None
