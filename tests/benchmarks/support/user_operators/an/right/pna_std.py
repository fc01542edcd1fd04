import torch
from torch.autograd.function import once_differentiable


class SegmentStd(torch.autograd.Function):
    """Per-node (biased) std of incoming messages; nodes with one or no message give 0, with zero gradient."""

    @staticmethod
    def forward(ctx, msg, index, size):
        one = torch.ones(len(index), 1, dtype=msg.dtype, device=msg.device)
        cnt = msg.new_zeros(size, 1).index_add_(0, index, one).clamp_(min=1)
        mean = msg.new_zeros(size, msg.shape[1]).index_add_(0, index, msg) / cnt
        diff = msg - mean[index]
        std = (msg.new_zeros(size, msg.shape[1]).index_add_(0, index, diff ** 2) / cnt).sqrt()
        ctx.save_for_backward(diff, std, cnt, index)
        return std

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        diff, std, cnt, index = ctx.saved_tensors
        coef = torch.where(std > 0, grad / (std * cnt), torch.zeros_like(grad))
        return diff * coef[index], None, None
