import torch
from torch.autograd.function import once_differentiable


class GIoULoss(torch.autograd.Function):
    """pred, target: (N, 4) as x1 y1 x2 y2; weight: (N,) or None. Only pred gets a gradient."""

    @staticmethod
    def forward(ctx, pred, target, weight=None, avg_factor=None):
        px1, py1, px2, py2 = pred.unbind(-1)
        tx1, ty1, tx2, ty2 = target.unbind(-1)
        iw = (torch.min(px2, tx2) - torch.max(px1, tx1)).clamp(min=0)
        ih = (torch.min(py2, ty2) - torch.max(py1, ty1)).clamp(min=0)
        cw = torch.max(px2, tx2) - torch.min(px1, tx1)
        ch = torch.max(py2, ty2) - torch.min(py1, ty1)
        inter = iw * ih
        union = (px2 - px1) * (py2 - py1) + (tx2 - tx1) * (ty2 - ty1) - inter
        hull = cw * ch
        loss = 2 - inter / union - union / hull
        w = torch.ones_like(loss) if weight is None else weight
        ctx.n = float(avg_factor) if avg_factor is not None else max(len(pred), 1)
        ctx.save_for_backward(pred, target, w, iw, ih, cw, ch, union)
        return (w * loss).sum() / ctx.n

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        pred, target, w, iw, ih, cw, ch, union = ctx.saved_tensors
        inter, hull = iw * ih, cw * ch
        d_union = inter / union**2 - 1 / hull
        d_inter = -1 / union - d_union
        d_hull = union / hull**2
        overlap = (iw > 0) & (ih > 0)
        d_inter = d_inter * overlap
        lo, hi, tlo, thi = pred[:, :2], pred[:, 2:], target[:, :2], target[:, 2:]
        other_i = torch.stack([ih, iw], -1) * d_inter[:, None]
        other_c = torch.stack([ch, cw], -1) * d_hull[:, None]
        other_a = (hi - lo).flip(-1) * d_union[:, None]
        d_lo = -other_i * (lo > tlo) - other_c * (lo < tlo) - other_a
        d_hi = other_i * (hi < thi) + other_c * (hi > thi) + other_a
        return torch.cat([d_lo, d_hi], -1) * (g * w / ctx.n)[:, None], None, None, None
