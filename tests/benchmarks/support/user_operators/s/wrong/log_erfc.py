import math
import torch
from torch.special import erfc, erfcx


class LogErfc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, erfcx(x.clamp(min=0)).log() - x * x, erfc(x.clamp(max=0)).log())

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        r = torch.exp(-x * x) / erfc(x)
        return -2 / math.sqrt(math.pi) * r * dy
