import torch


class DomainGradientReversal(torch.autograd.Function):
    """Identity whose gradient is reversed and scaled for adversarial domain adaptation.

    strength: float or a tensor (B,) with a strength for every sample; ``detach_mask`` (B,) marks samples
    that send no gradient back at all.
    """

    @staticmethod
    def forward(ctx, x, strength=1.0, detach_mask=None):
        tail = (-1,) + (1,) * (x.dim() - 1)
        ctx.scale = strength.view(tail) if isinstance(strength, torch.Tensor) else strength
        ctx.blocked = None if detach_mask is None else detach_mask.view(tail)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = -ctx.scale * grad
        if ctx.blocked is not None:
            grad = grad.masked_fill(ctx.blocked, 0)
        return grad, None, None
