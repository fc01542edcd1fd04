import torch


class _SoftDice(torch.autograd.Function):
    """1 - (2 <p, t> + s) / (<p^2> + <t^2> + s) for each class, over batch and pixels."""

    @staticmethod
    def forward(ctx, probs, target, valid, smooth):
        p = probs * valid
        t = target * valid
        inter = (p * t).sum((0, 2))
        denom = p.pow(2).sum((0, 2)) + t.pow(2).sum((0, 2))
        ctx.save_for_backward(probs, target, valid)
        ctx.smooth = smooth
        return 1 - (2 * inter + smooth) / (denom + smooth)

    @staticmethod
    def backward(ctx, g):
        probs, target, valid = ctx.saved_tensors
        p = probs * valid
        t = target * valid
        num = 2 * (p * t).sum((0, 2)) + ctx.smooth
        den = p.pow(2).sum((0, 2)) + t.pow(2).sum((0, 2)) + ctx.smooth
        shape = (1, -1, 1)
        grad = -2 * t / den.view(shape) + 2 * p * (num / den ** 2).view(shape)
        return g.view(shape) * grad * valid, None, None, None


def soft_dice_loss(probs, target, ignore_mask=None, smooth=1.0, reduction="mean"):
    """probs, target: (B, C, *); ignore_mask: (B, *), true where a pixel does not count."""
    b, c = probs.shape[:2]
    probs, target = probs.reshape(b, c, -1), target.reshape(b, c, -1)
    if ignore_mask is None:
        valid = torch.ones_like(target[:, :1])
    else:
        valid = (~ignore_mask).reshape(b, 1, -1).to(probs.dtype)
    loss = _SoftDice.apply(probs, target, valid, smooth)
    return loss.mean() if reduction == "mean" else loss
