import torch


class SmoothL1(torch.autograd.Function):
    """Smooth L1 loss (Fast R-CNN) with transition point ``beta`` > 0, of two tensors of one shape."""

    @staticmethod
    def forward(ctx, pred, target, beta=1.0, reduction="mean"):
        ctx.save_for_backward(pred, target)
        ctx.beta, ctx.reduction = beta, reduction
        d = (pred - target).abs()
        loss = torch.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
        return loss.mean() if reduction == "mean" else loss.sum()

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        diff = pred - target
        g = torch.where(diff.abs() < ctx.beta, diff / ctx.beta, diff.sign())
        if ctx.reduction == "mean":
            g = g / diff.numel()
        g = g * grad_output
        return g, -g, None, None
