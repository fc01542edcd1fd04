import torch
import torch.nn.functional as F


class _SigmoidFocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, alpha, gamma):
        ctx.save_for_backward(logits, targets)
        ctx.alpha, ctx.gamma = alpha, gamma
        p = torch.sigmoid(logits)
        ce = F.softplus(logits) - targets * logits
        p_t = p * targets + (1 - p) * (1 - targets)
        loss = ce * (1 - p_t) ** gamma
        if alpha >= 0:
            loss = loss * (alpha * targets + (1 - alpha) * (1 - targets))
        return loss

    @staticmethod
    def backward(ctx, g):
        logits, targets = ctx.saved_tensors
        alpha, gamma = ctx.alpha, ctx.gamma
        p = torch.sigmoid(logits)
        ce = F.softplus(logits) - targets * logits
        p_t = p * targets + (1 - p) * (1 - targets)
        dce = p - targets
        dpt = torch.where(targets > 0.5, p * (1 - p), -p * (1 - p))
        mod = (1 - p_t) ** gamma
        rest = (1 - p_t).clamp(min=torch.finfo(p_t.dtype).tiny)
        dmod = -gamma * rest ** (gamma - 1) * dpt
        grad = dce * mod + ce * dmod
        if alpha >= 0:
            grad = grad * (alpha * targets + (1 - alpha) * (1 - targets))
        return g * grad, None, None, None


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2.0, reduction="none"):
    """Focal loss of RetinaNet; targets in [0, 1], soft targets too. ``alpha < 0`` turns the balance off."""
    loss = _SigmoidFocal.apply(inputs, targets, alpha, gamma)
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss
