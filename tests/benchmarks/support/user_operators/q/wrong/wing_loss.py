import math
import torch


class WingLoss(torch.autograd.Function):
    """Wing loss (Feng et al. 2018), mean over all landmarks."""

    @staticmethod
    def forward(ctx, pred, target, w=10.0, eps=2.0):
        d = pred - target
        assert not d.is_complex()
        ctx.save_for_backward(pred, target)
        ctx.w, ctx.eps = w, eps
        c = w - w * math.log(1 + w / eps)
        a = d.abs()
        return torch.where(a < w, w * torch.log1p(a / eps), a - c).mean()

    @staticmethod
    def backward(ctx, grad_out):
        pred, target = ctx.saved_tensors
        d = pred - target
        a = d.abs()
        slope = torch.where(a < ctx.w, ctx.w / (1 + a / ctx.eps), torch.ones_like(a))
        g = grad_out * slope * d.sign() / d.numel()
        return g, -g, None, None
