import torch


class TverskyLoss(torch.autograd.Function):
    @staticmethod
    def _sums(p, t):
        p, t = p.flatten(1), t.flatten(1)
        return (p * t).sum(1), (p * (1 - t)).sum(1), ((1 - p) * t).sum(1)

    @staticmethod
    def forward(ctx, prob, target, alpha, beta, smooth):
        tp, fp, fn = TverskyLoss._sums(prob, target)
        ctx.save_for_backward(prob, target)
        ctx.args = alpha, beta, smooth
        return (1 - (tp + smooth) / (tp + alpha * fp + beta * fn + smooth)).mean()

    @staticmethod
    def backward(ctx, g):
        prob, target = ctx.saved_tensors
        alpha, beta, smooth = ctx.args
        tp, fp, fn = TverskyLoss._sums(prob, target)
        shape = (-1,) + (1,) * (prob.dim() - 1)
        num = (tp + smooth).view(shape)
        den = (tp + alpha * fp + beta * fn + smooth).view(shape)
        dden = target + alpha * (1 - target) - beta * target
        d = (target * den - num * dden) / den**2
        return -g * d / prob.size(0), None, None, None, None
