import torch
from torch.autograd.function import once_differentiable


class MaxPool2dWithIndices(torch.autograd.Function):
    """Max pooling without padding; returns (values, flat indices into H * W)."""

    @staticmethod
    def forward(ctx, x, kernel, stride):
        n, c, h, w = x.shape
        win = x.unfold(2, kernel, stride).unfold(3, kernel, stride)
        oh, ow = win.shape[2:4]
        val, arg = win.reshape(n, c, oh, ow, -1).max(-1)
        row = torch.arange(oh, device=x.device).view(-1, 1) * stride + arg // kernel
        col = torch.arange(ow, device=x.device) * stride + arg % kernel
        idx = row * w + col
        ctx.save_for_backward(idx)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(idx)
        return val, idx

    @staticmethod
    @once_differentiable
    def backward(ctx, gval, _):
        (idx,) = ctx.saved_tensors
        n, c, h, w = ctx.shape
        gx = gval.new_zeros(n, c, h * w)
        gx.scatter_add_(2, idx.reshape(n, c, -1), gval.reshape(n, c, -1))
        return gx.view(ctx.shape), None, None
