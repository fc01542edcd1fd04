import math

import torch
from torch.autograd import Function


class GEGLU(Function):
    @staticmethod
    def forward(ctx, x, dim=-1):
        a, b = x.chunk(2, dim)
        ctx.save_for_backward(x)
        ctx.dim = dim
        return a * torch.nn.functional.gelu(b)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        a, b = x.chunk(2, ctx.dim)
        cdf = 0.5 * (1 + torch.erf(b / math.sqrt(2)))
        pdf = torch.exp(-0.5 * b * b) / math.sqrt(2 * math.pi)
        return torch.cat((grad * a * (cdf + b * pdf), grad * b * cdf), ctx.dim), None
