import math

from torch.autograd import Function


class GaussianNLL(Function):
    """Gaussian negative log likelihood with a predicted variance.

    var is clamped at ``eps``; what was clamped gets no gradient.  mean, target and var have one
    shape.
    """

    @staticmethod
    def forward(ctx, mean, target, var, full=False, eps=1e-6, reduction="mean"):
        v = var.clamp(min=eps)
        loss = 0.5 * (v.log() + (mean - target) ** 2 / v)
        if full:
            loss = loss + 0.5 * math.log(2 * math.pi)
        ctx.save_for_backward(mean, target, var)
        ctx.eps = eps
        ctx.reduction = reduction
        if reduction == "mean":
            return loss.mean()
        elif reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, grad_output):
        mean, target, var = ctx.saved_tensors
        v = var.clamp(min=ctx.eps)
        if ctx.reduction == "mean":
            grad_output = grad_output / mean.numel()
        res = (mean - target) / v
        grad_mean = grad_output * res
        grad_var = grad_output * 0.5 * (1 / v - res * res)
        grad_var = grad_var * (v > 0)
        return grad_mean, -grad_mean, grad_var, None, None, None
