import torch
import torch.nn.functional as F


class AvgPool1dExcludePad(torch.autograd.Function):
    """Average pooling in which padded positions are not counted. x: (B, C, T)"""

    @staticmethod
    def _counts(length, kernel, stride, pad, like):
        ones = F.pad(like.new_ones(length), (pad, pad))
        return ones.unfold(0, kernel, stride).sum(-1)

    @staticmethod
    def forward(ctx, x, kernel, stride=None, padding=0):
        stride = stride or kernel
        ctx.spec = (x.shape[-1], kernel, stride, padding)
        sums = F.pad(x, (padding, padding)).unfold(-1, kernel, stride).sum(-1)
        return sums / AvgPool1dExcludePad._counts(x.shape[-1], kernel, stride, padding, x)

    @staticmethod
    def backward(ctx, gy):
        length, kernel, stride, padding = ctx.spec
        gy = gy / kernel
        gx = gy.new_zeros(*gy.shape[:-1], length + 2 * padding)
        starts = torch.arange(gy.shape[-1], device=gy.device) * stride
        for k in range(kernel):
            gx = gx.index_add(-1, starts + k, gy)
        return gx[..., padding:padding + length], None, None, None
