import torch
from torch.autograd.function import once_differentiable


class SoftDiceLoss(torch.autograd.Function):
    """1 - mean soft Dice over the classes, pooled over the batch.

    Args:
        probs: (B, C, *) class probabilities
        target: (B, *) int64 labels; voxels equal to ``ignore_label`` take no part
        class_weight: (C,) weights of the mean, or None
        squared: squares in the denominator (V-Net) instead of plain sums
        smooth: added to numerator and denominator
        ignore_label: label that is skipped
    """

    @staticmethod
    def forward(ctx, probs, target, class_weight=None, squared=False, smooth=1.0, ignore_label=255):
        C = probs.size(1)
        p = probs.flatten(2)
        lab = target.flatten(1)
        keep = lab != ignore_label
        hot = torch.nn.functional.one_hot(lab.masked_fill(~keep, 0), C).transpose(1, 2).to(p.dtype)
        keep = keep.unsqueeze(1).to(p.dtype)
        hot = hot * keep
        pk = p * keep
        inter = (pk * hot).sum((0, 2))
        size = (pk * pk if squared else pk).sum((0, 2)) + hot.sum((0, 2))
        num, den = 2 * inter + smooth, size + smooth
        w = torch.ones_like(num) if class_weight is None else class_weight.to(num.dtype)
        total = w.sum()
        w = w / total
        ctx.save_for_backward(pk, hot, keep, num, den, w, total)
        ctx.weighted = class_weight is not None
        ctx.squared, ctx.shape = squared, probs.shape
        return 1 - (w * num / den).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pk, hot, keep, num, den, w, total = ctx.saved_tensors
        g_num = (-grad * w / den).view(1, -1, 1)
        g_den = (grad * w * num / den ** 2).view(1, -1, 1)
        g = 2 * g_num * hot
        g = g + g_den * (pk if ctx.squared else keep)
        g_weight = None
        if ctx.weighted and ctx.needs_input_grad[2]:
            g_w = -grad * num / den
            g_weight = (g_w - (g_w * w).sum()) / total
        return g.reshape(ctx.shape), None, g_weight, None, None, None
