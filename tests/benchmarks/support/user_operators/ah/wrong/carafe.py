import torch
import torch.nn.functional as F
from torch.autograd import Function


class CARAFEFunction(Function):
    @staticmethod
    def forward(ctx, features, masks, kernel_size, group_size, scale_factor):
        assert scale_factor >= 1
        assert masks.size(1) == kernel_size * kernel_size * group_size
        assert masks.size(-1) == features.size(-1) * scale_factor
        assert masks.size(-2) == features.size(-2) * scale_factor
        assert features.size(1) % group_size == 0
        assert (kernel_size - 1) % 2 == 0 and kernel_size >= 1
        ctx.kernel_size = kernel_size
        ctx.group_size = group_size
        ctx.scale_factor = scale_factor
        ctx.save_for_backward(features, masks)
        taps = CARAFEFunction._taps(features, kernel_size, group_size, scale_factor)
        n, c, h, w = features.shape
        m = masks.reshape(n, group_size, 1, kernel_size**2, h * scale_factor, w * scale_factor)
        return (taps * m).sum(3).reshape(n, c, h * scale_factor, w * scale_factor)

    @staticmethod
    def _taps(features, k, groups, s):
        n, c, h, w = features.shape
        cols = F.unfold(features, k, padding=k // 2).view(n, c * k * k, h, w)
        cols = cols.repeat_interleave(s, 2).repeat_interleave(s, 3)
        return cols.view(n, groups, c // groups, k * k, h * s, w * s)

    @staticmethod
    def backward(ctx, grad_output):
        features, masks = ctx.saved_tensors
        k, groups, s = ctx.kernel_size, ctx.group_size, ctx.scale_factor
        n, c, h, w = features.shape
        grad = grad_output.reshape(n, groups, c // groups, 1, h * s, w * s)
        grad_masks = (grad * CARAFEFunction._taps(features, k, groups, s)).sum(2).reshape(masks.shape)
        m = masks.reshape(n, groups, 1, k * k, h * s, w * s)
        cols = (grad * m).reshape(n, c * k * k, h, s, w, s).mean((3, 5))
        grad_features = F.fold(cols.reshape(n, c * k * k, h * w), (h, w), k, padding=k // 2)
        return grad_features, grad_masks, None, None, None


carafe = CARAFEFunction.apply
