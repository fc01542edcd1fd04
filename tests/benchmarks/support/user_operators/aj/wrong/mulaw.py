import math
import torch


class MuLaw(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mu=255):
        ctx.save_for_backward(x)
        ctx.mu = mu
        return torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        mu = ctx.mu
        return g * mu / (math.log1p(mu) * (1 + mu * x)), None
