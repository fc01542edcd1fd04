import math
import torch


class PWMLogOdds(torch.autograd.Function):
    """counts (..., L, 4), background (4,), pseudo scalar -> log2 odds, same shape as counts"""

    @staticmethod
    def forward(ctx, counts, background, pseudo):
        ctx.save_for_backward(counts, background, pseudo)
        depth = counts.sum(-1, keepdim=True) + pseudo
        return torch.log2((counts + pseudo * background) / depth / background)

    @staticmethod
    def backward(ctx, g):
        counts, background, pseudo = ctx.saved_tensors
        g = g / math.log(2)
        num = g / (counts + pseudo * background)
        depth = counts.sum(-1, keepdim=True) + pseudo
        col = g.sum(-2, keepdim=True) / depth
        g_bg = (pseudo * num - g / background).sum_to_size(background.shape)
        return num - col, g_bg, (num * background).sum() - col.sum()
