import torch


class AmplitudeLoss(torch.autograd.Function):
    """Phase-retrieval data term: compares smoothed moduli of a complex field with measured amplitudes."""

    @staticmethod
    def forward(ctx, field, target, eps=1e-3, reduction="mean"):
        m = (field.real.square() + field.imag.square() + eps).sqrt()
        loss = (m - target).square()
        ctx.save_for_backward(field, target)
        ctx.eps, ctx.reduction = eps, reduction
        if reduction == "mean":
            return loss.mean()
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, g):
        field, target = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / target.numel()
        m = (field.real.square() + field.imag.square() + ctx.eps).sqrt()
        diff = 2 * g * (m - target)
        gfield = diff / m * field
        return gfield, -diff, None, None
