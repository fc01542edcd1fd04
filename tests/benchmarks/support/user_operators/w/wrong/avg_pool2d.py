import torch
import torch.nn.functional as F


class AvgPool2dFn(torch.autograd.Function):
    """k x k means, stride k.  With count_include_pad=False, the border's mean is over real pixels."""

    @staticmethod
    def forward(ctx, x, k, pad, count_include_pad):
        ctx.args = (k, pad, count_include_pad, x.shape)
        y = F.avg_pool2d(F.pad(x, (pad,) * 4), k) * (k * k)
        return y / AvgPool2dFn._count(x, k, pad, count_include_pad)

    @staticmethod
    def _count(like, k, pad, count_include_pad, hw=None):
        h, w = hw or like.shape[-2:]
        one = like.new_ones(1, 1, h, w)
        one = F.pad(one, (pad,) * 4, value=1.0 if count_include_pad else 0.0)
        return F.avg_pool2d(one, k) * (k * k)

    @staticmethod
    def backward(ctx, g):
        k, pad, cip, shape = ctx.args
        h, w = shape[-2:]
        g = g / (k * k)
        g = g.repeat_interleave(k, -2).repeat_interleave(k, -1)
        full = g.new_zeros(*g.shape[:-2], h + 2 * pad, w + 2 * pad)
        full = full + F.pad(g, (0, full.shape[-1] - g.shape[-1], 0, full.shape[-2] - g.shape[-2]))
        return full[..., pad:pad + h, pad:pad + w], None, None, None
