import torch
import torch.nn.functional as F


class SigmoidFocalLoss(torch.autograd.Function):
    """RetinaNet focal loss on logits.

    reduction: 'none' | 'mean' | 'sum'; with 'mean' it's divided by the number of positives
    (at least 1), which counts as a constant.
    """

    @staticmethod
    def forward(ctx, logits, targets, alpha=0.25, gamma=2.0, reduction='none'):
        if reduction not in ('none', 'mean', 'sum'):
            raise ValueError(reduction)
        t = targets.to(logits.dtype)
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, t, reduction='none')
        p_t = p * t + (1 - p) * (1 - t)
        a_t = alpha * t + (1 - alpha) * (1 - t)
        loss = a_t * (1 - p_t) ** gamma * ce
        ctx.save_for_backward(logits, targets)
        ctx.cfg = alpha, gamma, reduction
        if reduction == 'sum':
            return loss.sum()
        if reduction == 'mean':
            return loss.sum() / t.sum().clamp(min=1)
        return loss

    @staticmethod
    def backward(ctx, grad):
        logits, targets = ctx.saved_tensors
        alpha, gamma, reduction = ctx.cfg
        t = targets.to(logits.dtype)
        s = 2 * t - 1
        x = s * logits
        pt = torch.sigmoid(x)
        a_t = alpha * t + (1 - alpha) * (1 - t)
        d = (1 - pt) ** gamma * (2 * pt * F.logsigmoid(x) - (1 - pt))
        d = a_t * s * d
        if reduction == 'mean':
            d = d / t.sum().clamp(min=1)
        return grad * d, None, None, None, None
