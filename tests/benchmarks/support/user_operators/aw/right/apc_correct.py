import torch


class APC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s):
        ctx.save_for_backward(s)
        return s - s.sum(-1, keepdim=True) * s.sum(-2, keepdim=True) / s.sum((-1, -2), keepdim=True)

    @staticmethod
    def backward(ctx, g):
        s, = ctx.saved_tensors
        row, col = s.sum(-1, keepdim=True), s.sum(-2, keepdim=True)
        total = s.sum((-1, -2), keepdim=True)
        g_row = (g * col).sum(-1, keepdim=True) / total
        g_col = (g * row).sum(-2, keepdim=True) / total
        g_total = (g * row * col).sum((-1, -2), keepdim=True) / total ** 2
        return g - g_row - g_col + g_total


def apc(s):
    return APC.apply(s)
