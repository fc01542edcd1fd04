import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Frangi2D(Function):
    """Frangi vesselness for bright vessels.

    l1, l2: Hessian eigenvalues with |l1| <= |l2|, any shape. Zero where l2 >= 0 (flat background
    included). beta, c: the usual constants.
    """

    @staticmethod
    def forward(ctx, l1, l2, beta=0.5, c=1.0):
        ctx.save_for_backward(l1, l2)
        ctx.beta, ctx.c = beta, c
        bright = l2 < 0
        d = torch.where(bright, l2, -torch.ones_like(l2))
        blob = torch.exp(-(l1 / d) ** 2 / (2 * beta ** 2))
        struct = torch.exp(-(l1 ** 2 + l2 ** 2) / (2 * c ** 2))
        return blob * (1 - struct) * bright

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        l1, l2 = ctx.saved_tensors
        beta, c = ctx.beta, ctx.c
        bright = l2 < 0
        d = torch.where(bright, l2, -torch.ones_like(l2))
        blob = torch.exp(-(l1 / d) ** 2 / (2 * beta ** 2))
        struct = torch.exp(-(l1 ** 2 + l2 ** 2) / (2 * c ** 2))
        g = g * bright
        a = blob * (1 - struct) / beta ** 2
        b = blob * struct / c ** 2
        g1 = g * (b * l1 - a * l1 / d ** 2)
        g2 = g * (b * l2 + a * l1 ** 2 / d ** 3)
        return g1, g2, None, None
