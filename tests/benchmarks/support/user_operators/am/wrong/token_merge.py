import torch
from torch.autograd import Function


class TokenMerge(Function):
    """Merge tokens by size-weighted averages.

    x (B, N, C), size (B, N) > 0, slot (B, N) in [0, num_slots)
    -> tokens (B, num_slots, C), sizes (B, num_slots); slots without tokens are zero
    """

    @staticmethod
    def merge(x, size, slot, num):
        at = slot[..., None].expand_as(x)
        total = size.new_zeros(x.shape[0], num).scatter_add(1, slot, size)
        acc = x.new_zeros(x.shape[0], num, x.shape[2]).scatter_add(1, at, size[..., None] * x)
        safe = torch.where(total > 0, total, 1)
        return acc / safe[..., None], total, safe, at

    @staticmethod
    def forward(ctx, x, size, slot, num):
        ctx.save_for_backward(x, size, slot)
        ctx.num = num
        merged, total, _, _ = TokenMerge.merge(x, size, slot, num)
        return merged, total

    @staticmethod
    def backward(ctx, g_merged, g_total):
        x, size, slot = ctx.saved_tensors
        merged, _, safe, at = TokenMerge.merge(x, size, slot, ctx.num)
        g = (g_merged / safe[..., None]).gather(1, at)
        gx = size[..., None] * g
        g_size = (g * x).sum(-1) + g_total.gather(1, slot)
        return gx, g_size, None, None
