import torch
from torch.nn.functional import one_hot


class TverskySeg(torch.autograd.Function):
    # logits (B, C, *spatial), target (B, *spatial) long; class_weight (C,) data or None
    @staticmethod
    def forward(ctx, logits, target, alpha=0.3, beta=0.7, smooth=1.0, ignore_index=255, class_weight=None):
        valid, hot = TverskySeg._targets(logits, target, ignore_index)
        p = logits.softmax(1) * valid
        dims = [0] + list(range(2, logits.dim()))
        tp = (p * hot).sum(dims)
        fp = (p * (1 - hot)).sum(dims)
        fn = ((1 - p) * hot).sum(dims)
        score = (tp + smooth) / (tp + alpha * fp + beta * fn + smooth)
        w = torch.full_like(score, 1.0 / score.numel()) if class_weight is None else class_weight / class_weight.sum()
        ctx.save_for_backward(logits, target, w)
        ctx.cfg = alpha, beta, smooth, ignore_index, dims
        return 1 - (w * score).sum()

    @staticmethod
    def _targets(logits, target, ignore_index):
        valid = target != ignore_index
        hot = one_hot(target.masked_fill(~valid, 0), logits.size(1)).movedim(-1, 1).to(logits.dtype)
        valid = valid.unsqueeze(1).to(logits.dtype)
        return valid, hot * valid

    @staticmethod
    def backward(ctx, g):
        logits, target, w = ctx.saved_tensors
        alpha, beta, smooth, ignore_index, dims = ctx.cfg
        valid, hot = TverskySeg._targets(logits, target, ignore_index)
        soft = logits.softmax(1)
        p = soft * valid
        tp, fp, fn = (p * hot).sum(dims), (p * (1 - hot)).sum(dims), ((1 - p) * hot).sum(dims)
        num = tp + smooth
        den = tp + alpha * fp + beta * fn + smooth
        shape = [1, -1] + [1] * (logits.dim() - 2)
        on = (1 / den - num / den ** 2).view(shape)
        off = (-num * alpha / den ** 2).view(shape)
        dp = -g * w.view(shape) * (hot * on + (1 - hot) * off) * valid
        dx = soft * (dp - (dp * soft).sum(1, keepdim=True))
        return dx, None, None, None, None, None, None
