import math
import torch
from torch.autograd import Function


class MuLawEncode(Function):
    """mu-law companding of audio in [-1, 1] (no rounding)"""

    @staticmethod
    def forward(ctx, x, mu=255):
        ctx.save_for_backward(x)
        ctx.mu = mu
        return x.sign() * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        mu = ctx.mu
        return grad_output * mu / ((1 + mu * x.abs()) * math.log1p(mu))
