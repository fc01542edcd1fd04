import torch


class FocalTversky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prob, target, alpha, beta, gamma, smooth):
        ctx.save_for_backward(prob, target)
        ctx.cfg = (alpha, beta, gamma, smooth)
        p, t = prob.flatten(1), target.flatten(1)
        tp = (p * t).sum(1)
        den = tp + alpha * (p * (1 - t)).sum(1) + beta * ((1 - p) * t).sum(1) + smooth
        return (1 - (tp + smooth) / den).pow(gamma).mean()

    @staticmethod
    def backward(ctx, g):
        prob, target = ctx.saved_tensors
        alpha, beta, gamma, smooth = ctx.cfg
        p, t = prob.flatten(1), target.flatten(1)
        num = (p * t).sum(1) + smooth
        den = num + alpha * (p * (1 - t)).sum(1) + beta * ((1 - p) * t).sum(1)
        dden = t + alpha * (1 - t) - beta * t
        dT = (t * den[:, None] - num[:, None] * dden) / den[:, None] ** 2
        outer = -gamma * (1 - num / den).pow(gamma - 1) / p.shape[0]
        return (g * outer[:, None] * dT).view(prob.shape), None, None, None, None, None
