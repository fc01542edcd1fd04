import torch


class PinballLoss(torch.autograd.Function):
    """Quantile loss for several quantiles.

    Parameters
    ----------
    pred : (N, Q)
    y : (N,)
    q : (Q,) levels in (0, 1)

    Returns
    -------
    mean over samples of the sum over levels
    """

    @staticmethod
    def forward(ctx, pred, y, q):
        ctx.save_for_backward(pred, y, q)
        e = y[:, None] - pred
        return torch.maximum(q * e, (q - 1) * e).sum(1).mean()

    @staticmethod
    def backward(ctx, g):
        pred, y, q = ctx.saved_tensors
        e = y[:, None] - pred
        slope = torch.where(e > 0, q.expand_as(e), (q - 1).expand_as(e)) * g / len(y)
        gq = (e * g / len(y)).sum(0) if ctx.needs_input_grad[2] else None
        return -slope, slope.sum(1), gq
