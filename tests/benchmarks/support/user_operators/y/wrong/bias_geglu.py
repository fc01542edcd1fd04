import math

import torch


class _BiasGEGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, linear_first):
        h = x + bias
        a, b = h.chunk(2, dim=-1)
        lin, gate = (a, b) if linear_first else (b, a)
        ctx.save_for_backward(x, bias)
        ctx.linear_first = linear_first
        return lin * gate * 0.5 * (1 + torch.erf(gate / math.sqrt(2)))

    @staticmethod
    def backward(ctx, dy):
        x, bias = ctx.saved_tensors
        a, b = (x + bias).chunk(2, dim=-1)
        lin, gate = (a, b) if ctx.linear_first else (b, a)
        cdf = 0.5 * (1 + torch.erf(gate / math.sqrt(2)))
        pdf = torch.exp(-0.5 * gate * gate) / math.sqrt(2 * math.pi)
        dlin = dy * gate * cdf
        dgate = dy * lin * (cdf + gate * pdf)
        dx = torch.cat([dlin, dgate], dim=-1)
        dbias = dx.flatten(0, -2).sum(0) if dx.dim() > 1 else dx
        return dx, dbias, None


def bias_geglu(x, bias, linear_first=True):
    return _BiasGEGLU.apply(x, bias, linear_first)
