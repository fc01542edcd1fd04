import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _NormWith(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean, var, gain, bias, eps):
        ctx.save_for_backward(x, gain)
        ctx.mean, ctx.var = mean.clone(), var.clone()
        ctx.eps = eps
        return (x - mean) * torch.rsqrt(var + eps) * gain + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, gain = ctx.saved_tensors
        rs = torch.rsqrt(ctx.var + ctx.eps)
        return g * rs * gain, None, None, (g * (x - ctx.mean) * rs).sum(0), g.sum(0), None


class StreamNorm(nn.Module):
    """Normalises (N, F) with the statistics of the past, then learns from the batch (training mode)."""

    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        y = _NormWith.apply(x, self.mean, self.var, self.gain, self.bias, self.eps)
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), self.momentum)
                self.var.lerp_(x.var(0, unbiased=False), self.momentum)
        return y
