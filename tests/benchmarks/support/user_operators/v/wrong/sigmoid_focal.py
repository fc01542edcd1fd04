import torch
import torch.nn.functional as F
from torch.autograd import Function


class SigmoidFocalLoss(Function):
    """RetinaNet focal loss on raw logits.

    Args:
        logits: any shape
        targets: same shape, 0. or 1.
        alpha: weight of the positive class, 1 - alpha is the one of the negatives
        gamma: focusing exponent
    Returns the sum over all anchors (divide by the number of positives yourself).
    """

    @staticmethod
    def forward(ctx, logits, targets, alpha=0.25, gamma=2.0):
        ctx.save_for_backward(logits, targets)
        ctx.alpha, ctx.gamma = alpha, gamma
        sgn = 2 * targets - 1
        logpt = F.logsigmoid(sgn * logits)
        pt = logpt.exp()
        at = alpha * targets + (1 - alpha) * (1 - targets)
        return -(at * (1 - pt) ** gamma * logpt).sum()

    @staticmethod
    def backward(ctx, grad_out):
        logits, targets = ctx.saved_tensors
        alpha, gamma = ctx.alpha, ctx.gamma
        sgn = 2 * targets - 1
        logpt = F.logsigmoid(sgn * logits)
        pt = logpt.exp()
        at = alpha * targets + alpha * (1 - targets)
        q = (1 - pt) ** gamma
        grad = at * sgn * q * (gamma * pt * logpt - (1 - pt))
        return grad_out * grad, None, None, None
