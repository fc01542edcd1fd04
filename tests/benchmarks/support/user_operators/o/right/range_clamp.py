import torch


class LearnedRangeClamp(torch.autograd.Function):
    """min(max(x, lo), hi) with gradients for the learned bounds.

    ``lo`` and ``hi`` broadcast against ``x`` (per tensor: shape (), per channel: (C, 1, 1), ...).
    """

    @staticmethod
    def forward(ctx, x, lo, hi):
        if torch.broadcast_shapes(x.shape, lo.shape, hi.shape) != x.shape:
            raise ValueError("lo and hi must broadcast to the shape of x")
        ctx.save_for_backward(x, lo, hi)
        return torch.minimum(torch.maximum(x, lo), hi)

    @staticmethod
    def backward(ctx, grad_out):
        x, lo, hi = ctx.saved_tensors
        above = torch.maximum(x, lo) > hi
        below = (x < lo) & ~above
        g_x = grad_out * ~(above | below)
        g_lo = (grad_out * below).sum_to_size(lo.shape)
        g_hi = (grad_out * above).sum_to_size(hi.shape)
        return g_x, g_lo, g_hi
