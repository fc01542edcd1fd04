import torch
from torch.autograd import Function

RATIO = 0.7


def codes(weight, size):
    w = weight.reshape(weight.shape[0], -1, size)
    delta = RATIO * w.abs().mean(-1, keepdim=True)
    return (w.sign() * (w.abs() > delta)).reshape(weight.shape)


class TernaryGroup(Function):
    """Ternary weights with a learned scale for every group of `size` columns.

    weight (O, I), scale (O, I // size). Straight-through for weights within [-clip, clip].
    """

    @staticmethod
    def forward(ctx, weight, scale, size=4, clip=1.0):
        q = codes(weight, size)
        ctx.save_for_backward(weight, scale, q)
        ctx.size, ctx.clip = size, clip
        return q * scale.repeat_interleave(size, 1)

    @staticmethod
    def backward(ctx, grad):
        weight, scale, q = ctx.saved_tensors
        inside = weight.abs() <= ctx.clip
        gw = grad * scale.repeat_interleave(ctx.size, 1) * inside
        gs = (grad * q).reshape(*scale.shape, ctx.size).mean(-1)
        return gw, gs, None, None
