"""Generalised IoU loss for matched boxes in (x1, y1, x2, y2) form."""
import torch
from torch.autograd.function import once_differentiable


def _area(b):
    return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


def _parts(p, t):
    lo_i, hi_i = torch.maximum(p[:, :2], t[:, :2]), torch.minimum(p[:, 2:], t[:, 2:])
    lo_c, hi_c = torch.minimum(p[:, :2], t[:, :2]), torch.maximum(p[:, 2:], t[:, 2:])
    side_i = (hi_i - lo_i).clamp(min=0)
    side_c = hi_c - lo_c
    return side_i, side_c


class GIoULoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, reduction="none", eps=1e-7):
        if pred.shape != target.shape or pred.size(-1) != 4:
            raise ValueError("boxes must be (N, 4)")
        side_i, side_c = _parts(pred, target)
        inter, hull = side_i.prod(1), side_c.prod(1) + eps
        union = _area(pred) + _area(target) - inter + eps
        loss = 2 - inter / union - union / hull
        ctx.save_for_backward(pred, target)
        ctx.reduction, ctx.eps = reduction, eps
        if reduction == "mean":
            return loss.mean()
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pred, target = ctx.saved_tensors
        if ctx.reduction == "mean":
            grad = grad / pred.size(0)
        side_i, side_c = _parts(pred, target)
        inter, hull = side_i.prod(1), side_c.prod(1) + ctx.eps
        union = _area(pred) + _area(target) - inter + ctx.eps
        k_union = inter / union ** 2 - 1 / hull
        k_inter = -1 / union - k_union
        k_hull = union / hull ** 2

        def one(a, b):
            w = a[:, 2:] - a[:, :2]
            d_area = torch.cat([-w.flip(1), w.flip(1)], 1)
            other_i = side_i.flip(1)
            d_inter = torch.cat([-other_i * (a[:, :2] > b[:, :2]), other_i * (a[:, 2:] < b[:, 2:])], 1)
            other_c = side_c.flip(1)
            d_hull = torch.cat([-other_c * (a[:, :2] < b[:, :2]), other_c * (a[:, 2:] > b[:, 2:])], 1)
            g = k_union[:, None] * d_area + k_inter[:, None] * d_inter + k_hull[:, None] * d_hull
            return g * grad.reshape(-1, 1)

        return one(pred, target), one(target, pred), None, None
