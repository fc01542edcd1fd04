import torch
from torch.autograd.function import once_differentiable


class _GIoU(torch.autograd.Function):
    """2 - I / U - U / E for boxes (N, 4) as x1 y1 x2 y2"""

    @staticmethod
    def forward(ctx, pred, target, eps):
        lo_p, hi_p = pred[:, :2], pred[:, 2:]
        lo_t, hi_t = target[:, :2], target[:, 2:]
        wh_p, wh_t = hi_p - lo_p, hi_t - lo_t
        wh_i = (torch.minimum(hi_p, hi_t) - torch.maximum(lo_p, lo_t)).clamp(min=0)
        wh_e = torch.maximum(hi_p, hi_t) - torch.minimum(lo_p, lo_t)
        inter = wh_i.prod(1)
        union = wh_p.prod(1) + wh_t.prod(1) - inter + eps
        hull = wh_e.prod(1) + eps
        ctx.save_for_backward(pred, target, wh_p, wh_i, wh_e, inter, union, hull)
        return 2 - inter / union - union / hull

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        pred, target, wh_p, wh_i, wh_e, inter, union, hull = ctx.saved_tensors
        d_union = inter / union.square() - 1 / hull
        d_inter = -1 / union - d_union
        d_hull = union / hull.square()
        # width times height: each side's factor is the other side
        side_p = d_union[:, None] * wh_p.flip(1)
        side_i = d_inter[:, None] * wh_i.flip(1) * (wh_i > 0)
        side_e = d_hull[:, None] * wh_e.flip(1)
        lo_p, hi_p = pred[:, :2], pred[:, 2:]
        lo_t, hi_t = target[:, :2], target[:, 2:]
        g_lo = -side_p - side_i * (lo_p > lo_t) - side_e * (lo_p < lo_t)
        g_hi = side_p + side_i * (hi_p < hi_t) + side_e * (hi_p > hi_t)
        return g[:, None] * torch.cat([g_lo, g_hi], 1), None, None


def giou_loss(pred, target, reduction="mean", eps=1e-7):
    """Generalised IoU loss; the gradient goes to the predicted boxes only (targets are detached)."""
    loss = _GIoU.apply(pred, target.detach(), eps)
    if reduction == "none":
        return loss
    return loss.sum() / max(len(loss), 1) if reduction == "mean" else loss.sum()
