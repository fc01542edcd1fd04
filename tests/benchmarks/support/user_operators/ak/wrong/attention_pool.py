import torch
from torch.autograd.function import once_differentiable


class MaskedAttentionPool(torch.autograd.Function):
    """sum_t softmax(x w)_t x_t over the valid steps; sequences without a valid step give zeros.

    x: (B, T, D), w: (D,), mask: (B, T) bool
    """

    @staticmethod
    def forward(ctx, x, w, mask):
        p = (x @ w).masked_fill(~mask, float("-inf")).softmax(-1)
        ctx.save_for_backward(x, w, p)
        return (p.masked_fill(~mask, 0.0)[..., None] * x).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, w, p = ctx.saved_tensors
        gp = (x * g[:, None]).sum(-1)
        gs = p * (gp - (p * gp).sum(-1, keepdim=True))
        gx = p[..., None] * g[:, None] + gs[..., None] * w
        return gx, (gs[..., None] * x).sum((0, 1)), None
