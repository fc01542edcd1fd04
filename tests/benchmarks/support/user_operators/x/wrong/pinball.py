import torch


class PinballLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, quantiles, reduction=1):
        e = target.unsqueeze(-1) - pred
        ctx.save_for_backward(e, quantiles)
        ctx.reduction = reduction
        loss = torch.maximum(quantiles * e, (quantiles - 1) * e)
        return (loss, loss.mean(), loss.sum())[reduction]

    @staticmethod
    def backward(ctx, g):
        e, q = ctx.saved_tensors
        d = torch.where(e >= 0, q, 1 - q)
        if ctx.reduction == 1:
            g = g / e.numel()
        d = d * g
        return -d, d.sum(-1), None, None
