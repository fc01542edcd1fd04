import torch


class KeepAndScale(torch.autograd.Function):
    """Dropout with the mask handed in: x * keep / (1 - p).  keep is bool, of x's shape or broadcast to it."""

    @staticmethod
    def forward(ctx, x, keep, p):
        if keep.dtype != torch.bool or not 0 <= p < 1:
            raise ValueError("keep must be bool and p in [0, 1)")
        ctx.save_for_backward(keep)
        ctx.scale = 1 / (1 - p)
        return x * keep * ctx.scale

    @staticmethod
    def backward(ctx, g):
        keep, = ctx.saved_tensors
        return g.mul_(keep).mul(ctx.scale), None, None
