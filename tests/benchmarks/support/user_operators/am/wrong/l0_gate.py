import math

import torch
from torch import nn


class _HardConcrete(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log_alpha, noise, beta, low, high):
        ctx.save_for_backward(x, log_alpha, noise)
        ctx.cfg = beta, low, high
        s = torch.sigmoid((torch.logit(noise) + log_alpha) / beta)
        gate = (s * (high - low) + low).clamp(0, 1)
        cost = torch.sigmoid(log_alpha - beta * math.log(-low / high)).sum()
        return x * gate, cost

    @staticmethod
    def backward(ctx, gy, gcost):
        x, log_alpha, noise = ctx.saved_tensors
        beta, low, high = ctx.cfg
        s = torch.sigmoid((torch.logit(noise) + log_alpha) / beta)
        z = s * (high - low) + low
        live = (s > 0) & (s < 1)
        g_s = gy * x * live * (high - low)
        g_alpha = (g_s * s * (1 - s) / beta).sum_to_size(log_alpha.shape)
        c = torch.sigmoid(log_alpha - beta * math.log(-low / high))
        return gy * z.clamp(0, 1), g_alpha + gcost * c * (1 - c), None, None, None, None


class L0Gate(nn.Module):
    # returns the gated features (B, F) and the expected number of open gates
    def __init__(self, features, beta=2 / 3, low=-0.1, high=1.1):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.zeros(features))
        self.cfg = beta, low, high

    def forward(self, x, noise):
        return _HardConcrete.apply(x, self.log_alpha, noise, *self.cfg)
