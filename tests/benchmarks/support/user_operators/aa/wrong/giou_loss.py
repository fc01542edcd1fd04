import torch


class GIoULoss(torch.autograd.Function):
    """1 - GIoU of paired boxes (x1, y1, x2, y2).

    pred: (N, 4), requires grad; target: (N, 4), constant; weight: (N,) or None, constant
    reduction: 'none' | 'mean' | 'sum'
    """

    @staticmethod
    def parts(p, t):
        raw = torch.minimum(p[:, 2:], t[:, 2:]) - torch.maximum(p[:, :2], t[:, :2])
        wh = raw.clamp(min=0)
        inter = wh.prod(1)
        area = lambda b: (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        union = area(p) + area(t) - inter
        ewh = torch.maximum(p[:, 2:], t[:, 2:]) - torch.minimum(p[:, :2], t[:, :2])
        return raw, wh, inter, union, ewh

    @staticmethod
    def forward(ctx, pred, target, weight=None, reduction="mean"):
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(reduction)
        ctx.save_for_backward(pred, target, weight)
        ctx.reduction = reduction
        _, _, inter, union, ewh = GIoULoss.parts(pred, target)
        loss = 2 - inter / union - union / ewh.prod(1)
        if weight is not None:
            loss = loss * weight
        if reduction == "none":
            return loss
        return loss.sum() if reduction == "sum" else loss.mean()

    @staticmethod
    def backward(ctx, g):
        p, t, weight = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / p.shape[0]
        g = g.expand(p.shape[0])
        if weight is not None:
            g = g * weight
        raw, wh, inter, union, ewh = GIoULoss.parts(p, t)
        C = ewh.prod(1)
        dU = g * (inter / union ** 2 - 1 / C)
        dI = -g / union - dU
        dC = g * union / C ** 2
        flip = lambda v: v.flip(1)

        d_wh = dI[:, None] * flip(wh)
        d_ewh = dC[:, None] * flip(ewh)
        d_size = dU[:, None] * flip(p[:, 2:] - p[:, :2])
        low = -d_wh * (p[:, :2] > t[:, :2]) - d_ewh * (p[:, :2] < t[:, :2]) - d_size
        high = d_wh * (p[:, 2:] < t[:, 2:]) + d_ewh * (p[:, 2:] > t[:, 2:]) + d_size
        return torch.cat([low, high], 1), None, None, None
