import torch


class DistributionFocalLoss(torch.autograd.Function):
    """Distribution focal loss (GFL).

    pred: (N, R + 1) logits, target: (N,) distances in [0, R), weight: (N,) or None (both data).
    Returns the weighted mean.
    """

    @staticmethod
    def forward(ctx, pred, target, weight=None, avg_factor=None):
        left = target.long()
        wr = target - left
        logp = pred.log_softmax(1)
        rows = torch.arange(len(left), device=pred.device)
        loss = -(logp[rows, left] * (1 - wr) + logp[rows, left + 1] * wr)
        if weight is not None:
            loss = loss * weight
        ctx.save_for_backward(pred, target, weight)
        ctx.avg = avg_factor or len(left)
        return loss.sum() / ctx.avg

    @staticmethod
    def backward(ctx, g):
        pred, target, weight = ctx.saved_tensors
        left = target.long()
        wr = (target - left)[:, None]
        want = torch.zeros_like(pred)
        want = want.scatter(1, left[:, None], 1 - wr).scatter(1, left[:, None] + 1, wr)
        gp = (pred.softmax(1) - want) * g / len(pred)
        if weight is not None:
            gp = gp * weight[:, None]
        return gp, None, None, None
