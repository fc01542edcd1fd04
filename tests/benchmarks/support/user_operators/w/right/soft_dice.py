import torch


class SoftDice(torch.autograd.Function):
    # probs, mask: (N, H, W) in [0, 1]
    @staticmethod
    def forward(ctx, probs, mask, smooth):
        ctx.save_for_backward(probs, mask)
        ctx.smooth = smooth
        inter = (probs * mask).sum((1, 2))
        total = probs.sum((1, 2)) + mask.sum((1, 2))
        return (1 - (2 * inter + smooth) / (total + smooth)).mean()

    @staticmethod
    def backward(ctx, g):
        probs, mask = ctx.saved_tensors
        num = 2 * (probs * mask).sum((1, 2), keepdim=True) + ctx.smooth
        den = (probs + mask).sum((1, 2), keepdim=True) + ctx.smooth
        g = g / probs.shape[0]
        gp = g * (num / den**2 - 2 * mask / den)
        gm = g * (num / den**2 - 2 * probs / den) if ctx.needs_input_grad[1] else None
        return gp, gm, None
