import torch
import torch.nn as nn


class DecayImpute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, last, mask, delta, w, b, mean):
        a = w * delta + b
        gamma = torch.exp(-a.clamp(min=0))
        ctx.save_for_backward(last, mask, delta, w, b, mean)
        return torch.where(mask, x, gamma * last + (1 - gamma) * mean)

    @staticmethod
    def backward(ctx, g):
        last, mask, delta, w, b, mean = ctx.saved_tensors
        a = w * delta + b
        gamma = torch.exp(-a.clamp(min=0))
        zero = torch.zeros_like(g)
        gx = torch.where(mask, g, zero)
        gi = torch.where(mask, zero, g)
        ga = -gi * (last - mean) * gamma
        gmean = (gi * (1 - gamma)).sum(0)
        return gx, gi * gamma, None, ga * w, (ga * delta).sum(0), ga.sum(0), gmean


class GRUDInput(nn.Module):
    """Decay imputation of GRU-D. x, last, delta: (B, F) float; mask: (B, F) bool, True where observed."""

    def __init__(self, n_features):
        super().__init__()
        self.w = nn.Parameter(torch.ones(n_features))
        self.b = nn.Parameter(torch.zeros(n_features))
        self.mean = nn.Parameter(torch.zeros(n_features))

    def forward(self, x, last, mask, delta):
        return DecayImpute.apply(x, last, mask, delta, self.w, self.b, self.mean)
