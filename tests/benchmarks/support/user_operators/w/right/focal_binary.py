import torch
import torch.nn.functional as F


class BinaryFocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, gamma, alpha):
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        pt = torch.where(target > 0.5, p, 1 - p)
        at = alpha * target + (1 - alpha) * (1 - target)
        ctx.save_for_backward(logits, target)
        ctx.gamma, ctx.alpha = gamma, alpha
        return (at * (1 - pt) ** gamma * ce).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        gamma, alpha = ctx.gamma, ctx.alpha
        sgn = 2 * target - 1
        at = alpha * target + (1 - alpha) * (1 - target)
        pt = torch.sigmoid(sgn * logits)
        log_pt = F.logsigmoid(sgn * logits)
        # d/dz of -(1-pt)^gamma log pt
        d = sgn * (1 - pt) ** gamma * (gamma * pt * log_pt - (1 - pt))
        return grad * at * d / logits.numel(), None, None, None


class FocalLoss(torch.nn.Module):
    """RetinaNet's loss for labels in {0, 1}."""

    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha

    def forward(self, logits, target):
        return BinaryFocal.apply(logits, target, self.gamma, self.alpha)
