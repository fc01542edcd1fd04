import math

import torch


class MuLawCompress(torch.autograd.Function):
    """sign(x) * log(1 + mu |x|) / log(1 + mu)"""

    @staticmethod
    def forward(ctx, x, mu=255.0):
        ctx.save_for_backward(x)
        ctx.mu = mu
        return torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        mu = ctx.mu
        return grad_output * mu / (math.log1p(mu) * (1 + mu * x.abs())), None
