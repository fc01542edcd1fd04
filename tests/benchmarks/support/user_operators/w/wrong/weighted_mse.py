import torch


class WeightedMSE(torch.autograd.Function):
    """sum w (x - y)^2 / sum w, all of one shape; without weights the plain mean."""

    @staticmethod
    def forward(ctx, x, y, w=None):
        ctx.save_for_backward(x, y, w)
        sq = (x - y) ** 2
        return sq.mean() if w is None else (w * sq).sum() / w.sum()

    @staticmethod
    def backward(ctx, g):
        x, y, w = ctx.saved_tensors
        e = x - y
        if w is None:
            gx = 2 * g * e / e.numel()
            return gx, -gx, None
        total = w.sum()
        gx = 2 * g * w * e / total
        gw = g * (e * e - (w * e * e).sum() / total) / total
        return gx, -gx, None
