import torch


class _Dice(torch.autograd.Function):

    @staticmethod
    def forward(ctx, prob, target, ignore_index, smooth, squared):
        n, c = prob.shape[:2]
        valid = (target != ignore_index).unsqueeze(1)
        onehot = torch.nn.functional.one_hot(target.masked_fill(target == ignore_index, 0), c)
        onehot = onehot.movedim(-1, 1).to(prob.dtype) * valid
        ctx.save_for_backward(prob, onehot, valid)
        ctx.smooth, ctx.squared = smooth, squared
        inter, total = _Dice.sums(prob, onehot, valid, squared)
        return 1 - (2 * inter + smooth) / (total + smooth)

    @staticmethod
    def sums(prob, onehot, valid, squared):
        dims = (0,) + tuple(range(2, prob.dim()))
        p = prob * valid
        inter = (p * onehot).sum(dims)
        total = ((p * p) if squared else p).sum(dims) + onehot.sum(dims)
        return inter, total

    @staticmethod
    def backward(ctx, g):
        prob, onehot, valid = ctx.saved_tensors
        inter, total = _Dice.sums(prob, onehot, valid, ctx.squared)
        shape = (1, -1) + (1,) * (prob.dim() - 2)
        den = total + ctx.smooth
        a = (-2 * g / den).view(shape)
        b = (g * (2 * inter + ctx.smooth) / den ** 2).view(shape)
        dtotal = 2 * prob if ctx.squared else torch.ones_like(prob)
        return (a * onehot + b * dtotal) * valid, None, None, None, None


def dice_loss(prob, target, ignore_index: int = 255, smooth: float = 1.0, squared: bool = False, reduction: str = "mean"):
    """Per-class soft Dice loss over the batch.

    prob (N, C, *) class probabilities, target (N, *) labels, ``ignore_index`` voxels count nowhere.
    squared: V-Net form with squared terms in the denominator.
    """
    loss = _Dice.apply(prob, target, ignore_index, smooth, squared)
    return {"mean": torch.mean, "sum": torch.sum, "none": lambda x: x}[reduction](loss)
