import math

import torch


class CharlieD(torch.autograd.Function):
    # sheen NDF, Estevez & Kulla 2017.  cos_h in (0, 1), alpha in (0, 1], same shape
    @staticmethod
    def forward(cos_h, alpha):
        n = alpha.reciprocal()
        return (2 + n) * (1 - cos_h * cos_h) ** (n / 2) / (2 * math.pi)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, grad):
        cos_h, alpha, d = ctx.saved_tensors
        n = 1 / alpha
        s2 = 1 - cos_h ** 2
        gc = ga = None
        if ctx.needs_input_grad[0]:
            gc = -grad * d * n * cos_h / s2
        if ctx.needs_input_grad[1]:
            dn = d * (1 / (2 + n) + s2.log())
            ga = -grad * dn * n ** 2
        return gc, ga
